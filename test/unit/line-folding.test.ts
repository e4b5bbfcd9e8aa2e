import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LineFolding } from '../../src/line-folding.ts'
import { createLogger } from '../../src/logger.ts'

function countWritten(folding: LineFolding, event: string, times: number, nowMs: number): number {
  return Array.from({ length: times }, () => folding.take(event, nowMs)).filter((each) => each !== null).length
}

test('a flood of one event leaves a burst, and then one line a minute', () => {
  const folding = new LineFolding()
  assert.equal(countWritten(folding, 'refused', 10_000, 0), 50)
  assert.equal(countWritten(folding, 'refused', 10_000, 59_999), 0)
  assert.equal(countWritten(folding, 'refused', 10_000, 60_000), 1)
  assert.equal(countWritten(folding, 'refused', 10_000, 180_000), 2)
})

test('the next line tells how many were left out before it, once', () => {
  const folding = new LineFolding()
  for (let i = 0; i < 60; i++) folding.take('refused', 0)
  assert.equal(folding.take('refused', 60_000), 10)
  assert.equal(folding.take('refused', 120_000), 0)
})

test('a flood of one event hides no other', () => {
  const folding = new LineFolding()
  countWritten(folding, 'refused', 10_000, 0)
  assert.equal(folding.take('disk.failed', 0), 0)
})

test('a quiet time gives the whole burst back and no more', () => {
  const folding = new LineFolding()
  countWritten(folding, 'refused', 100, 0)
  assert.equal(countWritten(folding, 'refused', 1000, 86_400_000), 50)
})

test('what nobody told yet is summed up once', () => {
  const folding = new LineFolding()
  countWritten(folding, 'refused', 60, 0)
  countWritten(folding, 'quiet', 1, 0)
  assert.deepEqual(folding.drain(), [{ event: 'refused', count: 10 }])
  assert.deepEqual(folding.drain(), [])
})

test('a logger folds what repeats and keeps whole lines of JSON', () => {
  const lines: string[] = []
  const logger = createLogger('info', { write: (line) => void lines.push(line) })
  for (let i = 0; i < 1000; i++) logger.warn('server.connection.refused', { offset: 7n })
  logger.info('edge.ready')
  assert.equal(lines.length, 51)
  assert.equal(JSON.parse(lines[0] ?? '').offset, 7)
  assert.equal(JSON.parse(lines[50] ?? '').event, 'edge.ready')
})

test('debug lines are asked for and none is left out', () => {
  const lines: string[] = []
  const logger = createLogger('debug', { write: (line) => void lines.push(line) })
  for (let i = 0; i < 1000; i++) logger.debug('log.group.written')
  assert.equal(lines.length, 1000)
})
