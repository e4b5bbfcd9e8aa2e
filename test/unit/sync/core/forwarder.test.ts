/** Single decisions of the forwarder; whole lives of it are in `test/simulation/sync-forwarder.test.ts`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../../src/errors.ts'
import { Forwarder } from '../../../../src/sync/core/forwarder.ts'
import type { Effect, ForwarderOptions } from '../../../../src/sync/core/forwarder-protocol.ts'
import { idPrefix, messageId } from '../../../../src/sync/core/message-id.ts'

const OPTIONS: ForwarderOptions = {
  idPrefix: (incarnation) => idPrefix(new Uint8Array(16), 1, incarnation),
  cursor: undefined,
  logStart: 0n,
  durableEnd: 5n,
  foundEnd: 0n,
  bounds: { maxCount: 100, maxBytes: 10_000 },
  retry: { minDelayUs: 1000, maxDelayUs: 2000 },
  blockedRetryUs: 1000,
  settleUs: 0,
  maxRefusals: 3,
  maxDeadLettersInRow: 4,
  tailPageCount: 10,
  tailScanMaxCount: 100,
  random: () => 0.5,
}

const ticketOf = (effects: readonly Effect[]): number => {
  const question = effects.findLast((effect) => 'ticket' in effect)
  assert.ok(question !== undefined)
  return question.ticket
}

/** The upstream is reached, has the topic, and nothing in it. */
function reachEmptyUpstream(forwarder: Forwarder): Effect[] {
  const linked = forwarder.step({ type: 'link-up' }, 1000)
  const asked = forwarder.step({ type: 'topic-ready', ticket: ticketOf(linked) }, 1000)
  return forwarder.step({ type: 'tail', ticket: ticketOf(asked), page: { currentOffset: 0n, messages: [] } }, 1000)
}

test('what retention takes before the upstream was ever reached is told and counted as given up', () => {
  const forwarder = new Forwarder(OPTIONS, 0)
  forwarder.step({ type: 'appended', logStart: 3n, durableEnd: 9n }, 500)
  const effects = reachEmptyUpstream(forwarder)
  const reports = effects.flatMap((effect) => (effect.type === 'report' ? [effect.report] : []))
  assert.deepEqual(reports, [{ kind: 'gap', from: 0n, end: 3n }])
  assert.equal(forwarder.view().counters.gapCount, 3n)
  const read = effects.find((effect) => effect.type === 'read')
  assert.equal(read?.fromOffset, 3n)
})

test("what was gone before the route was there is nobody's loss", () => {
  const forwarder = new Forwarder({ ...OPTIONS, logStart: 3n }, 0)
  const effects = reachEmptyUpstream(forwarder)
  assert.deepEqual(
    effects.map(({ type }) => type),
    ['read'],
  )
  assert.equal(forwarder.view().counters.gapCount, 0n)
})

test('what a copy of this store has sent is not taken for what this process never sent', () => {
  const forwarder = new Forwarder({ ...OPTIONS, foundEnd: 5n }, 0)
  const asked = reachEmptyUpstream(forwarder)
  const read = { count: 5, sizeBytes: 50, nextOffset: 5n, hole: null }
  const sent = forwarder.step({ type: 'read', ticket: ticketOf(asked), read }, 2000)
  forwarder.step({ type: 'confirmed', ticket: ticketOf(sent), upstreamBaseOffset: 0n }, 3000)
  forwarder.step({ type: 'link-down', error: new EdgeError('EDGE_CONNECTION_LOST', 'gone') }, 4000)
  forwarder.step({ type: 'appended', logStart: 0n, durableEnd: 9n }, 5000)
  const linked = forwarder.step({ type: 'link-up' }, 6000)
  const scanned = forwarder.step({ type: 'topic-ready', ticket: ticketOf(linked) }, 6000)
  const theirs = { offset: 7n, id: messageId(OPTIONS.idPrefix(0), 7n) }
  const page = { currentOffset: 7n, messages: [theirs] }
  const effects = forwarder.step({ type: 'tail', ticket: ticketOf(scanned), page }, 6000)
  const reports = effects.flatMap((effect) => (effect.type === 'report' ? [effect.report] : []))
  assert.deepEqual(reports, [{ kind: 'ahead', from: 5n, end: 8n }])
  assert.equal(effects.find((effect) => effect.type === 'read')?.fromOffset, 5n)
})
