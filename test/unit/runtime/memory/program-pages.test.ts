import assert from 'node:assert/strict'
import { test } from 'node:test'
import { unchangedProgramPages } from '../../../../src/runtime/memory/program-pages.ts'

const mapping = (head: string, anonymousKb: number): string =>
  `${head}\nSize:                 64 kB\nRss:                  60 kB\nAnonymous:      ${String(anonymousKb).padStart(8)} kB\nVmFlags: rd ex mr mw me sd`

test('pages of programs count that nobody may write and nobody has written', () => {
  const smaps = [
    mapping('00400000-0082f000 r--p 00000000 fe:00 123                                /usr/bin/iggy-edge', 0),
    mapping('0082f000-034ce000 r-xp 0042f000 fe:00 123                                /usr/bin/iggy-edge', 0),
    // Relocated by the loader, and data.
    mapping('0732a000-073dc000 r--p 06f2a000 fe:00 123                                /usr/bin/iggy-edge', 8),
    mapping('073dc000-073e0000 rw-p 06fdc000 fe:00 123                                /usr/bin/iggy-edge', 0),
    mapping('7f00-7f10 r-xp 00000000 00:01 7                                          /memfd:addon.node (deleted)', 0),
    // Code that was changed, and a file without code.
    mapping('7f20-7f30 r-xp 00000000 fe:00 124                                        /lib/libchanged.so', 4),
    mapping(
      '7f40-7f50 r--p 00000000 fe:00 125                                        /usr/lib/locale/C.utf8/LC_CTYPE',
      0,
    ),
    mapping('7f60-7f70 r-xp 00000000 00:00 0                                          [vdso]', 0),
    mapping('7f80-7f90 r-xp 00000000 00:00 0 ', 0),
    mapping('7fa0-7fb0 r-xs 00000000 fe:00 126                                        /shared', 0),
    '',
  ].join('\n')
  assert.deepEqual(unchangedProgramPages(smaps), [
    { from: 0x400000n, size: 0x42f000n },
    { from: 0x82f000n, size: 0x2c9f000n },
    { from: 0x7f00n, size: 0x10n },
  ])
})

test('a text that says nothing of changes gives nothing', () => {
  assert.deepEqual(
    unchangedProgramPages('00400000-0082f000 r-xp 00000000 fe:00 123 /usr/bin/iggy-edge\nRss: 4 kB\n'),
    [],
  )
  assert.deepEqual(unchangedProgramPages(''), [])
})
