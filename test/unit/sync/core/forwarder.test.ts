/** Single decisions of the forwarder; whole lives of it are in `test/simulation/sync-forwarder.test.ts`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Forwarder } from '../../../../src/sync/core/forwarder.ts'
import type { Effect, ForwarderOptions } from '../../../../src/sync/core/forwarder-protocol.ts'
import { idPrefix } from '../../../../src/sync/core/message-id.ts'

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
