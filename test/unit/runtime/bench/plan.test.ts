import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  BENCH_BOUNDS,
  BENCH_DEFAULTS,
  type BenchOptions,
  IN_FLIGHT_MAX_BYTES,
  partitionsOf,
  planScenarios,
  polledBatches,
  ROOM_MIN_BYTES,
  requestsWithin,
  storedLimitOf,
} from '../../../../src/runtime/bench/plan.ts'
import { GIB, KIB, MIB } from '../../../../src/setting.ts'

const namesOf = (options: BenchOptions, hasPromises = true) =>
  planScenarios(options, hasPromises).map(({ name, batch }) => `${name} ${batch}`)

describe('what bench measures', () => {
  it('is five things on an edge', () => {
    const expected = ['durable_singles 1', 'buffered_singles 1', 'batches 100', 'polls_100 100', 'polls_1000 1000']
    assert.deepEqual(namesOf(BENCH_DEFAULTS), expected)
  })

  it('names no promise where a topic cannot have its own', () => {
    assert.deepEqual(namesOf(BENCH_DEFAULTS, false), ['singles 1', 'batches 100', 'polls_100 100', 'polls_1000 1000'])
    assert.ok(planScenarios(BENCH_DEFAULTS, false).every(({ promise }) => promise === null))
    assert.ok(planScenarios(BENCH_DEFAULTS, false).every(({ title }) => !title.includes('durable')))
  })

  it('asks for fewer large messages at once, and leaves out what would be measured twice', () => {
    assert.deepEqual(namesOf({ ...BENCH_DEFAULTS, payloadBytes: 64 * KIB }).slice(2), ['batches 16', 'polls_16 16'])
    assert.deepEqual(namesOf({ ...BENCH_DEFAULTS, payloadBytes: MIB }).slice(2), ['polls_1 1'])
  })

  it('never has more in flight than its bound', () => {
    for (const connections of [BENCH_BOUNDS.connections.min, 16, BENCH_BOUNDS.connections.max]) {
      for (const payloadBytes of [1, 200, 10 * KIB, IN_FLIGHT_MAX_BYTES / BENCH_BOUNDS.connections.max]) {
        for (const { batch } of planScenarios({ seconds: 1, connections, payloadBytes }, true))
          assert.ok(batch === 1 || connections * batch * payloadBytes <= IN_FLIGHT_MAX_BYTES)
      }
    }
  })

  it('takes a partition for each connection, up to sixteen', () => {
    assert.deepEqual([1, 16, 256].map(partitionsOf), [1, 16, 16])
  })
})

describe('what bench stores', () => {
  it('is an eighth of the room, at most 256 MiB', () => {
    assert.equal(storedLimitOf(GIB), 128 * MIB)
    assert.equal(storedLimitOf(1024 * GIB), 256 * MIB)
  })

  it('is nothing where there is too little room', () => {
    assert.equal(storedLimitOf(ROOM_MIN_BYTES), 16 * MIB)
    assert.equal(storedLimitOf(ROOM_MIN_BYTES - 8), null)
    assert.equal(storedLimitOf(0), null)
  })

  it('keeps within the limit, with what messages take beside their payload', () => {
    const requests = requestsWithin(16 * MIB, 100, 200)
    assert.ok(requests * 100 * 200 < 16 * MIB)
    assert.ok(requests > 500)
    assert.equal(requestsWithin(MIB, 1, 2 * MIB), 1)
  })

  it('is enough for polls to read, and bounded for large messages', () => {
    assert.equal(polledBatches(256 * MIB, BENCH_DEFAULTS), 200)
    assert.equal(polledBatches(16 * MIB, { ...BENCH_DEFAULTS, payloadBytes: MIB }), 15)
  })
})
