import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { LogFile, type LogFileOptions } from '../../../../src/runtime/logging/log-file.ts'

const HOUR_MS = 3_600_000
const NAME = 'edge.log'

function setUp(context: TestContext, limits: Partial<LogFileOptions> = {}) {
  const dataPath = mkdtempSync(join(tmpdir(), 'edge-log-file-'))
  const folder = join(dataPath, 'logs')
  const time = { nowMs: Date.now() }
  const options = {
    path: join(folder, NAME),
    dataPath,
    maxFileBytes: 100,
    maxTotalBytes: 300,
    retentionMs: HOUR_MS,
    nowMs: () => time.nowMs,
    ...limits,
  }
  const log = new LogFile(options)
  context.after(() => {
    log.close()
    rmSync(dataPath, { recursive: true, force: true })
  })
  const names = () => readdirSync(folder).sort()
  return {
    log,
    options,
    folder,
    dataPath,
    time,
    names,
    text: (name = NAME) => readFileSync(join(folder, name), 'utf8'),
  }
}

const line = (text: string): string => `${text.padEnd(39, '.')}\n`

test('lines follow each other, full files are numbered, and all together stay within their bound', (context) => {
  const { log, names, text } = setUp(context)
  for (let number = 0; number < 5; number++) log.write(line(`${number}`))
  assert.deepEqual(names(), ['edge.log', 'edge.log.1', 'edge.log.2'])
  assert.equal(text(), line('4'))
  assert.equal(text('edge.log.2'), line('2') + line('3'))
  for (let number = 5; number < 9; number++) log.write(line(`${number}`))
  assert.deepEqual(names(), ['edge.log', 'edge.log.3', 'edge.log.4'])
})

test('a log goes on in the file that an earlier process left, and others in the folder are left alone', (context) => {
  const { log, options, folder, names, text } = setUp(context)
  mkdirSync(folder)
  writeFileSync(join(folder, NAME), line('before'))
  writeFileSync(join(folder, 'edge.log.7'), line('old'))
  for (const name of ['edge.log.old', 'edge.log.01', 'other.log.1']) writeFileSync(join(folder, name), line('x'))
  log.write(line('first'))
  assert.equal(text(), line('before') + line('first'))
  const later = new LogFile(options)
  later.write(line('second'))
  later.close()
  assert.equal(text(), line('second'))
  assert.deepEqual(names(), ['edge.log', 'edge.log.01', 'edge.log.7', 'edge.log.8', 'edge.log.old', 'other.log.1'])
})

test('old files go also where little is written', (context) => {
  const { log, folder, names, time } = setUp(context, { maxFileBytes: 0 })
  log.write(line('first'))
  writeFileSync(join(folder, 'edge.log.1'), line('old'))
  log.write(line('second'))
  assert.deepEqual(names(), ['edge.log', 'edge.log.1'])
  time.nowMs += 2 * HOUR_MS
  log.write(line('third'))
  assert.deepEqual(names(), ['edge.log'])
})

test('old files go also after the clock was set back', (context) => {
  const { log, folder, names, time } = setUp(context, { maxFileBytes: 0 })
  time.nowMs += 1e6 * HOUR_MS
  log.write(line('first'))
  time.nowMs -= 1e6 * HOUR_MS - 2 * HOUR_MS
  writeFileSync(join(folder, 'edge.log.1'), line('old'))
  log.write(line('second'))
  assert.deepEqual(names(), ['edge.log'])
})

test('nothing is made before the data folder is there, and lines are written once it is', (context) => {
  const { log, dataPath, text } = setUp(context)
  rmSync(dataPath, { recursive: true })
  log.write(line('lost'))
  assert.throws(() => readdirSync(dataPath), /ENOENT/)
  mkdirSync(dataPath)
  log.write(line('kept'))
  assert.equal(text(), line('kept'))
})

test('a place that cannot be written costs lines, not the process', (context) => {
  const { log, folder, text } = setUp(context)
  writeFileSync(folder, 'a file where the folder should be')
  log.write(line('lost'))
  rmSync(folder)
  log.write(line('kept'))
  assert.equal(text(), line('kept'))
})
