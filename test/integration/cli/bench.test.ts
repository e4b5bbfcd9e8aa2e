/** `iggy-edge bench`: what it prints and what it leaves behind, which is nothing. How fast anything is, is not asserted. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { placeBeside } from '../../../src/runtime/bench/own-edge.ts'
import type { BenchReport } from '../../../src/runtime/bench/report.ts'
import { runCommand, runHere, startCommand } from '../../support/cli-runner.ts'
import { type EdgeProcess, startEdgeProcess } from '../../support/edge-process.ts'

const QUICK = ['--seconds', '1', '--connections', '3']
const NAMES = ['durable_singles', 'buffered_singles', 'batches', 'polls_100', 'polls_1000']

let folder = ''
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edge-bench-test-'))
})
after(() => rm(folder, { recursive: true, force: true }))

describe('bench with an edge of its own', () => {
  const own = () => ['bench', '--data', join(folder, 'none', 'data'), ...QUICK]

  it('measures in a folder beside the data folder and removes it', async () => {
    const { code, stdout, stderr } = await runCommand([...own(), '--json'])
    assert.equal(code, 0, stderr)
    const report = JSON.parse(stdout) as BenchReport
    assert.equal(report.place.kind, 'own')
    assert.ok(report.place.kind === 'own' && report.place.folder.startsWith(join(folder, 'iggy-edge-bench-')))
    assert.deepEqual(
      report.scenarios.map(({ name }) => name),
      NAMES,
    )
    for (const each of report.scenarios) {
      assert.ok(each.messages > 0 && each.messages_per_second > 0 && each.p99_us >= each.p50_us, each.name)
      const isSend = !each.name.startsWith('polls')
      assert.equal(each.syncs_per_second !== undefined, isSend, each.name)
      assert.equal(each.written_bytes_per_second !== undefined, isSend, each.name)
    }
    assert.ok((report.memory_bytes ?? 0) > 0)
    assert.match(stderr, /^measuring durable, one by one/)
    assert.deepEqual(await readdir(folder), [])
  })

  it('leaves nothing behind when it is interrupted', async () => {
    using started = startCommand(own())
    await started.sees(/measuring durable/)
    assert.equal((await readdir(folder)).length, 1)
    started.interrupt()
    const { code, stdout, stderr } = await started.done
    assert.equal(code, 1)
    assert.match(stdout, /^Measuring an edge of its own in .*iggy-edge-bench-.* removed at the end/)
    assert.match(stderr, /bench: interrupted\n$/)
    assert.deepEqual(await readdir(folder), [])
  })

  it('refuses a disk with too little room above its floor', async () => {
    const floor = { EDGE_RETENTION__FREE_SPACE_FLOOR: '1024 GiB' }
    await assert.rejects(runHere(own(), floor), /bench: the disk of .* has room for 0 B, expected at least 128\.0 MiB/)
    assert.deepEqual(await readdir(folder), [])
  })

  it('lies on the disk of the data folder: beside it, or where that will be', async () => {
    const data = join(folder, 'there')
    await mkdir(data)
    assert.deepEqual(placeBeside(data), [folder, data])
    assert.deepEqual(placeBeside(join(data, 'not', 'yet')), [data])
    // The root of a file system of its own: what is beside it is another disk.
    assert.deepEqual(placeBeside('/proc'), ['/proc'])
    await rm(data, { recursive: true })
  })
})

describe('bench of a running server', () => {
  let edge: EdgeProcess
  before(async () => {
    edge = await startEdgeProcess({ dataPath: join(folder, 'data') })
  })
  after(() => edge[Symbol.asyncDispose]())

  const user = { IGGY_USERNAME: 'iggy', IGGY_PASSWORD: 'iggy' }
  const there = (...words: string[]) => ['bench', '--url', edge.tcp, ...QUICK, ...words]
  const ask = (line: string) => runHere([...line.split(' '), '--http-url', edge.http], { ...user, IGGY_URL: edge.tcp })
  const assertNothingLeft = async () => {
    assert.equal(await ask('stream list'), 'none')
    assert.equal(await ask('token list'), 'none')
  }

  it('prints where, a table and what it means, and removes its stream and its token', async () => {
    const { code, stdout, stderr } = await runCommand(there(), user)
    assert.equal(code, 0, stderr)
    const [head = '', titles = '', ...rest] = stdout.trimEnd().split('\n')
    assert.match(head, new RegExp(`^Measuring the server at ${edge.tcp}, in a stream of its own`))
    assert.match(titles, /^WHAT +MESSAGES\/S +P50 +P99 +WRITTEN\/S +SYNCS\/S$/)
    assert.equal(rest.filter((line) => /^(durable|buffered|polls)/.test(line)).length >= NAMES.length, true)
    assert.match(stdout, /^Memory of the server at the end: [\d.]+ MiB\.$/m)
    assert.match(rest.at(-1) ?? '', /[Bb]atches/)
    await assertNothingLeft()
  })

  it('leaves out what nobody tells it', async () => {
    const closed = ['--http-url', 'http://127.0.0.1:9', '--json']
    const { code, stdout, stderr } = await runCommand(there(...closed), user)
    assert.equal(code, 0, stderr)
    assert.match(stderr, /what the disk writes is not told: name the HTTP address with --http-url/)
    const { scenarios } = JSON.parse(stdout) as BenchReport
    assert.equal(scenarios.length, NAMES.length)
    for (const each of scenarios) assert.ok(!('syncs_per_second' in each || 'written_bytes_per_second' in each))
    await assertNothingLeft()
  })

  it('leaves nothing behind when it is interrupted', async () => {
    using started = startCommand(there(), user)
    await started.sees(/measuring durable/)
    started.interrupt()
    assert.equal((await started.done).code, 1)
    await assertNothingLeft()
  })
})

describe('bench refuses', () => {
  for (const [words, text] of [
    ['--seconds 0', /seconds: found "0", expected a whole number from 1 to 60/],
    ['--seconds 61', /seconds: found "61", expected a whole number from 1 to 60/],
    ['--connections 257', /connections: found "257", expected a whole number from 1 to 256/],
    ['--size 1048577', /size: found "1048577", expected a whole number from 1 to 1048576/],
    ['--connections 65 --size 1048576', /found 65 times 1048576 bytes, expected at most 67108864 together/],
    ['--url here --data there', /--data is for an edge of its own, --url for a running server/],
  ] as const) {
    it(words, async () => {
      await assert.rejects(runHere(['bench', ...words.split(' ')], {}), text)
    })
  }
})
