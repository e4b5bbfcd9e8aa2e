import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { silentLogger } from '../../../src/logger.ts'
import { loadConfig } from '../../../src/runtime/config/load.ts'
import { budgetStoreOf, routeStatuses, syncLagsOf } from '../../../src/runtime/forwarding.ts'
import type { Sync, SyncPartitionState, UpstreamState } from '../../../src/sync/index.ts'

const config = loadConfig({
  environment: {},
  file: {
    name: 'edge.toml',
    text: `
      [[sync.upstreams]]
      name = "central"
      url = "iggy+tcp://user:hunter2@central:8090"
      [[sync.upstreams]]
      name = "spare"
      url = "iggy+tcp://user:hunter2@spare:8090"
      [[sync.routes]]
      from = "sensors/*"
      to = "central:site/{topic}"
      [[sync.routes]]
      from = "alarms/*"
      to = "central:alarms/{topic}"`,
  },
})

function upstream(name: string, partitions: readonly SyncPartitionState[]): UpstreamState {
  return {
    name,
    url: `iggy+tcp://${name}:8090`,
    link: 'waiting',
    reason: { code: 'EDGE_UPSTREAM_UNREACHABLE', text: 'refused' },
    failureKind: 'unreachable',
    nextAttemptInMs: 5,
    failureCount: 1,
    usedTodayBytes: 0,
    pause: null,
    partitions,
  }
}

function partition(route: string, partitionId: number, lagCount: bigint): SyncPartitionState {
  return {
    route,
    streamName: 'sensors',
    topicName: 'temp',
    partitionId,
    state: 'waiting' as SyncPartitionState['state'],
    reason: null,
    nextAttemptInMs: null,
    confirmedOffset: null,
    durableEnd: lagCount,
    lagCount,
    confirmedAgoMs: null,
    sentCount: 0n,
    resentCount: 0n,
    deadLetterCount: 0n,
    gapCount: 0n,
    unreadableCount: 0n,
  }
}

function syncOf(...upstreams: readonly UpstreamState[]): Sync {
  return {
    state: () => ({ upstreams }),
    probe() {},
    close: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

const SENSORS = 'sensors/* > central:site/{topic}'

test('an upstream that cannot be reached shows on each of its routes, also before there is a topic', () => {
  const rows = routeStatuses(syncOf(upstream('central', []), upstream('spare', [])), config, systemClock)
  assert.deepEqual(
    rows.map(({ route, state, cause, lagMessages }) => ({ route, state, cause, lagMessages })),
    [SENSORS, 'alarms/* > central:alarms/{topic}'].map((route) => ({
      route,
      state: 'waiting',
      cause: 'refused',
      lagMessages: 0,
    })),
  )
})

test('a route counts its own partitions', () => {
  const state = upstream('central', [partition(SENSORS, 0, 3n), partition(SENSORS, 1, 4n)])
  const rows = routeStatuses(syncOf(state), config, systemClock)
  assert.deepEqual(
    rows.map(({ lagMessages }) => lagMessages),
    [7, 0],
  )
})

test('a cause that an operator can mend comes in plain words, before the words of the protocol', () => {
  const reason = { code: 'EDGE_CREDENTIALS_INVALID', text: 'the server answers 42' } as const
  const [row] = routeStatuses(syncOf({ ...upstream('central', []), reason }), config, systemClock)
  assert.equal(row?.cause, 'the upstream refuses user or password (the server answers 42)')
})

test('what was given up, set aside and sent again is counted route by route', () => {
  const one = { ...partition(SENSORS, 0, 0n), gapCount: 5n, deadLetterCount: 1n }
  const two = { ...partition(SENSORS, 1, 0n), gapCount: 2n, resentCount: 3n, unreadableCount: 4n }
  const [row] = routeStatuses(syncOf(upstream('central', [one, two])), config, systemClock)
  const { gapMessages, deadLetterMessages, resentMessages, unreadableMessages } = row ?? {}
  assert.deepEqual([gapMessages, deadLetterMessages, resentMessages, unreadableMessages], [7, 1, 3, 4])
})

test('an upstream that only an operator can mend is blocked, also while it is tried again, and says what to do', () => {
  const reason = { code: 'EDGE_CREDENTIALS_INVALID', text: 'the server answers 42' } as const
  for (const [failureKind, action] of [
    ['refused', /Correct user, password or token in the `url`/],
    ['certificate', /Correct `tls_ca_file`/],
    ['clock', /Set the clock/],
  ] as const)
    for (const link of ['blocked', 'connecting'] as const) {
      const [row] = routeStatuses(
        syncOf({ ...upstream('central', []), link, failureKind, reason }),
        config,
        systemClock,
      )
      assert.equal(row?.state, 'blocked')
      assert.match(row.action, action)
    }
})

test('a partition that the upstream lets nobody write to blocks its route, though the link is up', () => {
  const reason = { code: 'EDGE_FORBIDDEN', text: 'the server answers 41' } as const
  const up = { ...upstream('central', []), link: 'up', reason: null, failureKind: null, nextAttemptInMs: null } as const
  const waiting = { ...partition(SENSORS, 0, 3n), reason: { code: 'EDGE_BACKPRESSURE', text: 'busy' } } as const
  const blocked = { ...partition(SENSORS, 1, 3n), state: 'blocked', reason, nextAttemptInMs: 7 } as const
  const [row] = routeStatuses(syncOf({ ...up, partitions: [waiting, blocked] }), config, systemClock)
  assert.equal(row?.state, 'blocked')
  assert.match(row.cause, /has not the rights/)
  assert.match(row.action, /the right to write/)
  const [open] = routeStatuses(syncOf({ ...up, partitions: [waiting] }), config, systemClock)
  assert.equal(open?.state, 'connected')
})

test('a link that waits for its daily budget is paused, not in trouble, and says until when', () => {
  const clock = { wallUs: () => 1_000_000n, monotonicUs: () => 0 }
  const spent = { ...upstream('central', [partition(SENSORS, 0, 3n)]), link: 'up', reason: null } as const
  const paused = { ...spent, nextAttemptInMs: null, pause: { reason: 'day', forMs: 5000 } } as const
  const [row] = routeStatuses(syncOf(paused), config, clock)
  assert.deepEqual(
    [row?.state, row?.cause, row?.nextTryAtUs],
    ['paused', 'the daily budget of the link is used up', 6_000_000n],
  )
  const idle = { ...paused, partitions: [partition(SENSORS, 0, 0n)] }
  assert.equal(routeStatuses(syncOf(idle), config, clock)[0]?.state, 'connected')
})

test('what was spent of a daily budget is kept by the name of the upstream', async () => {
  const settings = new Map<string, string>()
  const metadata = {
    setting: (name: string) => settings.get(name),
    setSetting: async (name: string, value: string) => void settings.set(name, value),
  }
  const store = budgetStoreOf(metadata, silentLogger)
  assert.equal(store.spent('central'), undefined)
  await store.setSpent('central', { usedBytes: 12, elapsedUs: 3.6e9, atUs: 1_795_968_000_000_000n })
  assert.deepEqual(store.spent('central'), { usedBytes: 12, elapsedUs: 3.6e9, atUs: 1_795_968_000_000_000n })
  assert.equal(store.spent('other'), undefined)
  for (const damaged of ['100 5 1799p', '100 5', '1x0 5 1799']) {
    settings.set('sync.budget.central', damaged)
    assert.equal(store.spent('central'), undefined)
  }
})

test('without sync there are no routes and no lags', () => {
  assert.deepEqual(routeStatuses(null, config, systemClock), [])
  assert.equal(syncLagsOf(null).lagOf('sensors', 'temp', 0), null)
})

test('a partition is behind by what its slowest upstream lacks, from the first message on', () => {
  const lags = syncLagsOf(
    syncOf(upstream('central', [partition(SENSORS, 0, 3n)]), upstream('spare', [partition('other', 0, 9n)])),
  )
  assert.equal(lags.lagOf('sensors', 'temp', 0), 9n)
  assert.equal(lags.lagOf('sensors', 'temp', 1), null)
})
