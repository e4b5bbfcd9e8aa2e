import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { LOG_SETTINGS, openLog } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { topicOptions } from '../../support/topic-options.ts'

test('a start says with each partition that it goes on', async (context) => {
  const path = mkdtempSync(join(tmpdir(), 'edge-progress-'))
  context.after(() => rmSync(path, { recursive: true }))
  let toldCount = 0
  const settings = defaultsOf(LOG_SETTINGS)
  const common = { path, clock: systemClock, logger: silentLogger, settings, onProgress: () => void toldCount++ }
  const first = await openLog(common)
  const emptyCount = toldCount
  const stream = await first.catalog.createStream('s')
  await first.catalog.createTopic(stream, { name: 't', partitionCount: 50, options: topicOptions('durable') })
  await first.close()
  toldCount = 0
  await using _second = await openLog(common)
  assert.ok(toldCount >= emptyCount + 50, `${toldCount} beside ${emptyCount} of an empty store`)
})
