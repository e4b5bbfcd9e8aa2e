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
function reachEmptyUpstream(forwarder: Forwarder, nowUs = 1000): Effect[] {
  return findEmpty(forwarder, forwarder.step({ type: 'link-up' }, nowUs), nowUs)
}

function findEmpty(forwarder: Forwarder, linked: readonly Effect[], nowUs: number): Effect[] {
  const asked = forwarder.step({ type: 'topic-ready', ticket: ticketOf(linked), incarnation: '1' }, nowUs)
  return forwarder.step(
    {
      type: 'tail',
      ticket: ticketOf(asked),
      page: { currentOffset: 0n, messages: [], sizeBytes: 0, contentAt: () => null },
    },
    nowUs,
  )
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
  forwarder.step({ type: 'sent', ticket: ticketOf(sent) }, 2000)
  forwarder.step({ type: 'confirmed', ticket: ticketOf(sent), upstreamBaseOffset: 0n }, 3000)
  forwarder.step({ type: 'link-down', error: new EdgeError('EDGE_CONNECTION_LOST', 'gone') }, 4000)
  forwarder.step({ type: 'appended', logStart: 0n, durableEnd: 9n }, 5000)
  const linked = forwarder.step({ type: 'link-up' }, 6000)
  const scanned = forwarder.step({ type: 'topic-ready', ticket: ticketOf(linked), incarnation: '1' }, 6000)
  const theirs = { offset: 7n, id: messageId(OPTIONS.idPrefix(0), 7n) }
  const page = { currentOffset: 7n, messages: [theirs], sizeBytes: 0, contentAt: () => null }
  const looked = forwarder.step({ type: 'tail', ticket: ticketOf(scanned), page }, 6000)
  const others = { ...page, messages: [{ offset: 6n, id: messageId(OPTIONS.idPrefix(0), 6n) }] }
  const again = forwarder.step({ type: 'tail', ticket: ticketOf(looked), page: others }, 6000)
  const effects = forwarder.step({ type: 'tail', ticket: ticketOf(again), page: others }, 6000)
  const reports = effects.flatMap((effect) => (effect.type === 'report' ? [effect.report] : []))
  assert.deepEqual(reports, [{ kind: 'ahead', from: 5n, end: 8n }])
  assert.equal(effects.find((effect) => effect.type === 'read')?.fromOffset, 5n)
})

test('a hole behind what was sent is told once, and not taken for forgotten when the link comes back', () => {
  const forwarder = new Forwarder({ ...OPTIONS, durableEnd: 10n }, 0)
  const asked = reachEmptyUpstream(forwarder)
  const read = { count: 3, sizeBytes: 30, nextOffset: 10n, hole: { from: 3n, end: 10n } }
  const ticket = ticketOf(forwarder.step({ type: 'read', ticket: ticketOf(asked), read }, 2000))
  forwarder.step({ type: 'sent', ticket }, 2000)
  forwarder.step({ type: 'confirmed', ticket, upstreamBaseOffset: 0n }, 3000)
  forwarder.step({ type: 'link-down', error: new EdgeError('EDGE_CONNECTION_LOST', 'gone') }, 4000)
  const linked = forwarder.step({ type: 'link-up' }, 6000)
  const scanned = forwarder.step({ type: 'topic-ready', ticket: ticketOf(linked), incarnation: '1' }, 6000)
  const page = {
    currentOffset: 2n,
    messages: [{ offset: 2n, id: messageId(OPTIONS.idPrefix(0), 2n) }],
    sizeBytes: 0,
    contentAt: () => null,
  }
  const effects = forwarder.step({ type: 'tail', ticket: ticketOf(scanned), page }, 6000)
  assert.equal(
    effects.some((effect) => effect.type === 'report'),
    false,
  )
  assert.deepEqual([forwarder.view().state, forwarder.view().counters.unreadableCount], ['caught-up', 7n])
})

const HANG_UP = new EdgeError('EDGE_CONNECTION_LOST', 'hangs up')
const LONE = { count: 1, sizeBytes: 10, nextOffset: 1n, hole: null }

type Send = Extract<Effect, { type: 'send' }>

/** The batch of one record that is read is asked to be sent; undefined when something else is asked. */
function readLone(forwarder: Forwarder, asked: readonly Effect[], nowUs: number): Send | undefined {
  const effects = forwarder.step({ type: 'read', ticket: ticketOf(asked), read: LONE }, nowUs)
  return effects.find((effect) => effect.type === 'send')
}

const offer = (forwarder: Forwarder, nowUs: number): Send | undefined =>
  readLone(forwarder, reachEmptyUpstream(forwarder, nowUs), nowUs)

/** Sends until the forwarder wants something else. @returns the suspicion of each send. */
function hangUpEachTime(forwarder: Forwarder): number[] {
  const suspicions: number[] = []
  for (let nowUs = 1000; ; nowUs += 1000) {
    const send = offer(forwarder, nowUs)
    if (send === undefined) return suspicions
    suspicions.push(send.suspicion)
    forwarder.step({ type: 'sent', ticket: send.ticket }, nowUs)
    forwarder.step({ type: 'link-down', error: HANG_UP }, nowUs)
  }
}

test('a record is set aside only for links that it had for itself', () => {
  const forwarder = new Forwarder({ ...OPTIONS, durableEnd: 1n }, 0)
  assert.deepEqual(hangUpEachTime(forwarder), [0, 0, 0, 3, 4, 5, 6, 7, 8])
  assert.equal(forwarder.view().state, 'quarantining')
})

test('a link that ends before the record is handed to it says nothing about the record', () => {
  const forwarder = new Forwarder({ ...OPTIONS, durableEnd: 1n }, 0)
  for (let nowUs = 1000; nowUs < 100_000; nowUs += 1000) {
    assert.equal(offer(forwarder, nowUs)?.suspicion, 0)
    assert.equal(forwarder.view().state, 'paused')
    forwarder.step({ type: 'link-down', error: HANG_UP }, nowUs)
  }
})

test('where no more is given up, a record at which the peer hangs up is sent again each time', () => {
  const forwarder = new Forwarder({ ...OPTIONS, durableEnd: 1n, maxDeadLettersInRow: 0 }, 0)
  hangUpEachTime(forwarder)
  assert.equal(forwarder.view().state, 'blocked')
  const wokenUs = forwarder.view().nextAttemptUs ?? 0
  const asked = findEmpty(forwarder, forwarder.step({ type: 'woken' }, wokenUs), wokenUs)
  assert.ok(readLone(forwarder, asked, wokenUs))
})

test('after a dead letter the tail is looked at before anything is sent: the link may be another one', () => {
  const forwarder = new Forwarder({ ...OPTIONS, maxRefusals: 1 }, 0)
  const send = offer(forwarder, 1000)
  assert.ok(send)
  forwarder.step({ type: 'sent', ticket: send.ticket }, 1000)
  const error = new EdgeError('EDGE_UPSTREAM_REFUSED', 'no')
  const aside = forwarder.step({ type: 'failed', ticket: send.ticket, failure: { kind: 'invalid', error } }, 1000)
  forwarder.step({ type: 'link-down', error: HANG_UP }, 1000)
  forwarder.step({ type: 'link-up' }, 2000)
  const kept = forwarder.step({ type: 'dead-letter-kept', ticket: ticketOf(aside) }, 3000)
  assert.equal(kept.at(-1)?.type, 'ensure-topic')
  assert.equal(forwarder.view().counters.deadLetterCount, 1n)
})

const typesOf = (effects: readonly Effect[]) => effects.map(({ type }) => type)
const read = (from: number, end: number) => ({
  count: end - from,
  sizeBytes: 10 * (end - from),
  nextOffset: BigInt(end),
  hole: null,
})

/** Has sent its first batch, whose answer is on its way. */
function sending(): { forwarder: Forwarder; ticket: number } {
  const forwarder = new Forwarder(OPTIONS, 0)
  const asked = reachEmptyUpstream(forwarder)
  const sent = forwarder.step({ type: 'read', ticket: ticketOf(asked), read: read(0, 3) }, 2000)
  forwarder.step({ type: 'sent', ticket: ticketOf(sent) }, 2000)
  return { forwarder, ticket: ticketOf(sent) }
}

test('a topic that is missing is told, for others send to it as well', () => {
  const { forwarder, ticket } = sending()
  const failure = { kind: 'missing', error: new EdgeError('EDGE_TOPIC_NOT_FOUND', 'gone') } as const
  assert.deepEqual(typesOf(forwarder.step({ type: 'failed', ticket, failure }, 3000)), ['topic-missing', 'wake'])
  assert.deepEqual(forwarder.step({ type: 'topic-lost' }, 3000), [], 'it looks by itself')
})

test('a partition that is told of a lost topic reads the tail before it sends anything more', () => {
  const { forwarder, ticket } = sending()
  assert.deepEqual(typesOf(forwarder.step({ type: 'topic-lost' }, 3000)), ['ensure-topic'])
  assert.deepEqual(forwarder.step({ type: 'confirmed', ticket, upstreamBaseOffset: 0n }, 3000), [], 'too late')

  const reading = new Forwarder(OPTIONS, 0)
  const asked = reachEmptyUpstream(reading)
  assert.deepEqual(typesOf(reading.step({ type: 'topic-lost' }, 3000)), ['ensure-topic'])
  assert.deepEqual(reading.step({ type: 'read', ticket: ticketOf(asked), read: read(0, 3) }, 3000), [])
})

test('a send that is confirmed at an offset of long ago went to another topic, which is filled from the start', () => {
  const { forwarder, ticket } = sending()
  const next = forwarder.step({ type: 'confirmed', ticket, upstreamBaseOffset: 7n }, 3000)
  const sent = forwarder.step({ type: 'read', ticket: ticketOf(next), read: read(3, 5) }, 3000)
  forwarder.step({ type: 'sent', ticket: ticketOf(sent) }, 3000)
  const looked = forwarder.step({ type: 'confirmed', ticket: ticketOf(sent), upstreamBaseOffset: 0n }, 4000)
  assert.equal(typesOf(looked).at(-1), 'ensure-topic')
  const scanned = forwarder.step({ type: 'topic-ready', ticket: ticketOf(looked), incarnation: '1' }, 5000)
  const page = {
    currentOffset: 1n,
    messages: [{ offset: 1n, id: messageId(OPTIONS.idPrefix(0), 4n) }],
    sizeBytes: 0,
    contentAt: () => null,
  }
  const effects = forwarder.step({ type: 'tail', ticket: ticketOf(scanned), page }, 6000)
  assert.equal(effects.find((effect) => effect.type === 'read')?.fromOffset, 0n)
  assert.equal(forwarder.view().counters.resentCount, 5n)
})

test('a batch that the budget has no room for any more is read anew, and its hole is told once', () => {
  const forwarder = new Forwarder(OPTIONS, 0)
  const asked = reachEmptyUpstream(forwarder)
  const hole = { from: 1n, end: 3n }
  const first = forwarder.step({ type: 'read', ticket: ticketOf(asked), read: { ...read(0, 5), hole } }, 2000)
  const again = forwarder.step({ type: 'over-budget', ticket: ticketOf(first) }, 2000)
  assert.deepEqual(typesOf(again), ['read'])
  const smaller = { ...read(0, 3), hole }
  const sent = forwarder.step({ type: 'read', ticket: ticketOf(again), read: smaller }, 3000)
  forwarder.step({ type: 'sent', ticket: ticketOf(sent) }, 3000)
  const confirmed = forwarder.step({ type: 'confirmed', ticket: ticketOf(sent), upstreamBaseOffset: 0n }, 4000)
  assert.deepEqual(typesOf(confirmed), ['report', 'commit-cursor', 'read'])
  assert.equal(forwarder.view().counters.unreadableCount, 2n)
})
