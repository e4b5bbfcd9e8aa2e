import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { LOG_SETTINGS, type Log, openLog, RETENTION_SETTINGS } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'

const folder = mkdtempSync(join(tmpdir(), 'edge-data-folder-'))
after(() => rmSync(folder, { recursive: true }))

function open(path: string, expectExisting = false): Promise<Log> {
  const settings = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, journal_files: 3 }
  const retention = defaultsOf(RETENTION_SETTINGS)
  return openLog({ path, clock: systemClock, logger: silentLogger, settings, retention, expectExisting })
}

test('a new data folder is closed to other users of the machine', async () => {
  const path = join(folder, 'new')
  await using _log = await open(path)
  assert.equal(statSync(path).mode & 0o007, 0)
})

test('a store that is expected is not made anew: neither in a folder that is missing nor in an empty mount point', async () => {
  const missing = join(folder, 'missing')
  await assert.rejects(open(missing, true), { code: 'EDGE_STORE_MISSING', message: /is not there though/ })
  assert.equal(existsSync(missing), false)
  const empty = join(folder, 'empty')
  mkdirSync(empty)
  await assert.rejects(open(empty, true), { code: 'EDGE_STORE_MISSING', message: /is its disk mounted\?/ })
})

test('a file in the place of the folder is named', async () => {
  const path = join(folder, 'file')
  writeFileSync(path, '')
  await assert.rejects(open(path), { code: 'EDGE_STORE_MISSING', message: /\/file cannot be made: .*EEXIST/ })
})

test('a folder that cannot be written is named, whoever asks', async (context) => {
  // The kernel's own files refuse root too.
  if (!existsSync('/sys/kernel')) return context.skip('no /sys on this system')
  await assert.rejects(open('/sys/kernel'), { code: 'EDGE_IO', message: /folder \/sys\/kernel cannot be written: E/ })
})

test('a folder in the place of the lock is named', async () => {
  const path = join(folder, 'locked')
  mkdirSync(join(path, 'lock'), { recursive: true })
  await assert.rejects(open(path), {
    code: 'EDGE_IO',
    message: /cannot be written: .*\/lock: expected a file, found a folder/,
  })
})

test('a file in the place of the quarantine is in the way of nothing but what should be moved there', async () => {
  const path = join(folder, 'no-quarantine')
  await (await open(path)).close()
  rmSync(join(path, 'quarantine'), { recursive: true, force: true })
  writeFileSync(join(path, 'quarantine'), '')
  writeFileSync(join(path, 'journal/stranger'), 'of no use')
  await using log = await open(path)
  assert.deepEqual(
    log.findings().map(({ event }) => event),
    ['log.file.unreadable'],
  )
})

test('an open that fails late leaves no file open and no lock behind', async () => {
  const path = join(folder, 'late')
  await (await open(path)).close()
  const cron = { schedule: () => Promise.reject(new Error('no calendar')) }
  const settings = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, journal_files: 3 }
  await assert.rejects(openLog({ path, clock: systemClock, logger: silentLogger, settings, cron }), /no calendar/)
  const opened = readdirSync('/proc/self/fd').map((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`)
    } catch {
      return ''
    }
  })
  assert.deepEqual(
    opened.filter((target) => target.startsWith(path)),
    [],
  )
  await (await open(path)).close()
})

test('a file system that is read-only is named where a file is to be removed', {
  skip: spawnSync('unshare', ['-rm', 'true']).status === 0 ? false : 'no namespaces here',
}, () => {
  const path = join(folder, 'read-only')
  mkdirSync(path)
  writeFileSync(join(path, 'reserve'), '')
  const source = join(import.meta.dirname, '../../../src/log/io/node-file-system.ts')
  const program = `import { createNodeFileSystem } from '${source}'; createNodeFileSystem('${path}').unlink('reserve')`
  const readOnly = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$2" --input-type=module -e "$3"'
  const result = spawnSync('unshare', ['-rm', 'sh', '-c', readOnly, 'sh', path, process.execPath, program], {
    encoding: 'utf8',
  })
  assert.match(result.stderr, /EROFS \(the file system is read-only\) on .*\/reserve/)
})
