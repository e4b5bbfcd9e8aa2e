import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import type { EdgeError } from '../../../src/errors.ts'
import { LOG_SETTINGS, type Log, openLog } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'

const path = mkdtempSync(join(tmpdir(), 'edge-forgotten-device-'))
after(() => rmSync(path, { recursive: true }))

const open = (): Promise<Log> => {
  const settings = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, journal_files: 3, max_publishers: 1 }
  return openLog({ path, clock: systemClock, logger: silentLogger, settings })
}

const record = (log: Log, device: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const settled = (error: EdgeError | null): void => (error === null ? resolve() : reject(error))
    log.producers.record({ device, epoch: 7, lane: 0, firstSequence: 1, sequenceCount: 3 }, { settled })
  })

test('a device is forgotten for good, with its sequences, and another one has its place', async () => {
  {
    await using log = await open()
    const device = log.producers.numberOf('pump-1')
    await record(log, device)
    assert.throws(() => log.producers.numberOf('pump-2'), { code: 'EDGE_LIMIT_REACHED' })
  }
  {
    await using log = await open()
    const [remembered] = log.producers.devices()
    assert.equal(remembered?.name, 'pump-1')
    assert.ok((remembered.lastSeenUs ?? 0n) > 0n)
    const device = log.producers.forget('pump-1')
    assert.throws(() => log.producers.forget('pump-1'), { code: 'EDGE_DEVICE_NOT_FOUND' })
    const other = log.producers.numberOf('pump-2')
    assert.notEqual(other, device)
    assert.equal(log.producers.have(other, 7, 0), undefined)
  }
  await using log = await open()
  assert.deepEqual(log.producers.devices(), [{ name: 'pump-2', lastSeenUs: null }])
})
