import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SessionRegistry } from '../../../../src/quic-edge/core/session-registry.ts'
import { SessionFlow } from '../../../../src/quic-edge/core/stream-flow.ts'
import { limitsOf } from '../../../../src/quic-edge/defaults.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'

const LIMITS = { ...limitsOf(), maxUnreadBytesPerSession: 1000, maxPausedStreams: 2, maxStreamsPerSession: 2 }

test('a session is read until its unread bytes reach the bound, and again when enough was granted', () => {
  const flow = new SessionFlow(1000)
  assert.equal(flow.received(1, 600, 0), true)
  assert.equal(flow.received(2, 600, 5), false)
  assert.equal(flow.pausedCount, 1)
  assert.deepEqual(flow.granted(1, 100), [])
  assert.deepEqual(flow.granted(1, 200), [2])
  assert.equal(flow.unreadBytes, 900)
})

test('a stream that goes gives back what nobody worked off', () => {
  const flow = new SessionFlow(1000)
  flow.received(1, 900, 0)
  flow.received(2, 900, 0)
  assert.deepEqual(flow.forget(1), [2])
  assert.equal(flow.unreadBytes, 900)
  assert.deepEqual(flow.forget(2), [])
  assert.equal(flow.unreadBytes, 0)
})

test('granting more than was received does not make credit', () => {
  const flow = new SessionFlow(1000)
  flow.received(1, 300, 0)
  flow.granted(1, 100_000)
  assert.equal(flow.unreadBytes, 0)
})

test('unread bytes are always the sum over open streams, and streams wait only above the bound', () => {
  const random = new SeededRandom(3)
  const flow = new SessionFlow(1000)
  const model = new Map<number, number>()
  for (let step = 0; step < 5000; step++) {
    const stream = random.below(4)
    const size = random.below(400)
    const held = model.get(stream) ?? 0
    if (random.chance(0.5)) {
      flow.received(stream, size, step)
      model.set(stream, held + size)
    } else if (random.chance(0.8)) {
      flow.granted(stream, size)
      model.set(stream, Math.max(0, held - size))
    } else {
      flow.forget(stream)
      model.delete(stream)
    }
    assert.equal(
      flow.unreadBytes,
      [...model.values()].reduce((sum, one) => sum + one, 0),
    )
    if (flow.unreadBytes < 1000) assert.equal(flow.pausedCount, 0)
  }
})

test('streams above the limit of a session are not counted', () => {
  const registry = registryWith(1)
  assert.deepEqual(
    [1, 2, 3].map(() => registry.streamOpened(1, 0)),
    [true, true, false],
  )
  registry.streamClosed(1, 0, 0)
  assert.equal(registry.streamOpened(1, 0), true)
})

test('when too many streams wait, the next one is reset', () => {
  const registry = registryWith(1, 2, 3)
  for (const session of [1, 2, 3]) registry.streamOpened(session, 0)
  assert.equal(registry.received(1, 0, 1000, 0), 'pause')
  assert.equal(registry.received(2, 0, 1000, 0), 'pause')
  assert.equal(registry.received(3, 0, 1000, 0), 'reset')
})

test('a stream that waits for its handler too long is reset, not before', () => {
  const registry = registryWith(1)
  registry.streamOpened(1, 0)
  registry.received(1, 0, 1000, 0)
  assert.deepEqual(resets(registry, LIMITS.pauseTimeoutMs - 1), [])
  assert.deepEqual(resets(registry, LIMITS.pauseTimeoutMs), [0])
})

test("a session without a stream ends after the handshake's time, one that had a stream after the idle time", () => {
  const registry = registryWith(1, 2)
  registry.streamOpened(2, 0)
  registry.streamClosed(2, 0, 0)
  assert.deepEqual(closings(registry, LIMITS.handshakeTimeoutMs), [1])
  registry.remove(1)
  assert.deepEqual(closings(registry, LIMITS.idleTimeoutMs - 1), [])
  assert.deepEqual(closings(registry, LIMITS.idleTimeoutMs), [2])
})

test('open streams and datagrams keep a session', () => {
  const registry = registryWith(1, 2)
  registry.streamOpened(1, 0)
  registry.datagramReceived(2, LIMITS.handshakeTimeoutMs - 1)
  assert.deepEqual(closings(registry, LIMITS.handshakeTimeoutMs), [])
})

test('each session is pinged once an interval', () => {
  const registry = registryWith(1)
  registry.streamOpened(1, 0)
  const pings = (nowMs: number) => registry.due(nowMs).filter((action) => action.type === 'ping').length
  assert.deepEqual([9999, 10_000, 10_001, 20_000].map(pings), [0, 1, 0, 1])
})

function registryWith(...sessionIds: number[]): SessionRegistry {
  const registry = new SessionRegistry(LIMITS)
  for (const sessionId of sessionIds) registry.add(sessionId, 0)
  return registry
}

function resets(registry: SessionRegistry, nowMs: number): number[] {
  return registry.due(nowMs).flatMap((action) => (action.type === 'reset-stream' ? [action.streamId] : []))
}

function closings(registry: SessionRegistry, nowMs: number): number[] {
  return registry.due(nowMs).flatMap((action) => (action.type === 'close-idle' ? [action.sessionId] : []))
}
