/**
 * Four members of one group, processes of the official Python client, on eight partitions: who gets what in calm times, when
 * members come, go, freeze and are killed under load, and when the edge itself is killed.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../support/eventually.ts'
import { SeededRandom } from '../support/seeded-random.ts'
import { GroupMembers } from './support/group-members.ts'
import { GroupOverHttp } from './support/group-over-http.ts'
import { RestartableEdge } from './support/restartable-edge.ts'
import { preparePython } from './toolchain/python.ts'
import { Unavailable } from './toolchain/run-tool.ts'

const PARTITION_COUNT = 8
const MEMBER_COUNT = 4
const EVEN = [2, 2, 2, 2]
/** After a join or a leave. */
const REBALANCE_MS = 2000
/** `heartbeat.interval` here, above the 5 s of the clients; a member silent for 1.2 of it goes, looked at every two seconds. */
const HEARTBEAT_MS = 6000
const EVICTION_MS = HEARTBEAT_MS * 1.2 + 2500
/** 6 s are promised, 1.8 to 2.9 s were measured; the rest is room for a busy machine. */
const BACK_AFTER_RESTART_MS = 15_000
/** A Python process with its client, on a busy machine. */
const PROCESS_START_MS = 20_000
const CALM_ROUNDS = 50
const KILLS = 5
const LOAD_INTERVAL_MS = 20
const SEED = 4

for (const version of ['0.8.0', '0.9.0']) {
  test(`four members of Python ${version} share eight partitions through joins, kills and restarts`, async (t) => {
    let python: Awaited<ReturnType<typeof preparePython>>
    try {
      python = await preparePython(version)
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      t.skip(`python ${version} is not available here: ${error.message}`)
      return
    }
    await using edge = await RestartableEdge.start({ EDGE_HEARTBEAT__INTERVAL: `${HEARTBEAT_MS}ms` })
    const { tcp, http } = edge.addresses
    const group = new GroupOverHttp(http, PARTITION_COUNT)
    await group.createGroup()
    await using members = new GroupMembers(python, [tcp, 'load', 'events', 'workers'])
    const random = new SeededRandom(SEED)

    await t.test('four members get two partitions each', async () => {
      for (let count = 0; count < MEMBER_COUNT; count++) members.start()
      await untilShares(group, EVEN, PROCESS_START_MS)
    })

    await t.test('each message comes to exactly one member', async () => {
      for (let round = 0; round < CALM_ROUNDS; round++) await group.sendRound()
      await eventually(() => members.deliveries.length >= group.acked.length, 'all messages', REBALANCE_MS * 5)
      assert.deepEqual(members.deliveries.map(({ text }) => text).sort(), [...group.acked].sort())
      const owners = new Map<number, Set<number>>()
      for (const { partition, member } of members.deliveries) {
        owners.set(partition, (owners.get(partition) ?? new Set()).add(member))
      }
      assert.deepEqual(
        [...owners.values()].map((who) => who.size),
        Array.from({ length: PARTITION_COUNT }, () => 1),
      )
    })

    await t.test('a member that is killed under load is replaced at once, and nothing is lost', async () => {
      await underLoad(group, async () => {
        for (let kill = 0; kill < KILLS; kill++) {
          const numbers = members.numbers
          await members.kill(numbers[random.below(numbers.length)] ?? 0)
          await untilShares(group, [2, 3, 3], REBALANCE_MS)
          members.start()
          // The clock for a join runs from the join, which the group shows first.
          await eventually(
            async () => (await group.shares()).length === MEMBER_COUNT,
            'the fourth member',
            PROCESS_START_MS,
          )
          await untilShares(group, EVEN, REBALANCE_MS)
        }
      })
      await untilAllCame(group, members)
    })

    // After a reconnection the consumer of 0.8.0 may stand still, with Iggy's own server too.
    if (version === '0.8.0') return

    await t.test('a frozen member goes within the heartbeat timeout, and comes back when it runs again', async () => {
      await underLoad(group, async () => {
        const frozen = members.numbers[0] ?? 0
        members.freeze(frozen)
        await untilShares(group, [2, 3, 3], EVICTION_MS)
        members.thaw(frozen)
        await untilShares(group, EVEN, BACK_AFTER_RESTART_MS)
      })
      await untilAllCame(group, members)
    })

    await t.test('all members are back after a restart, and nothing is lost', async () => {
      await underLoad(group, async () => {
        await edge.restart()
        await untilShares(group, EVEN, BACK_AFTER_RESTART_MS)
      })
      await untilAllCame(group, members)
    })
  })
}

/** Sends to every partition, again and again, while `work` runs. */
async function underLoad(group: GroupOverHttp, work: () => Promise<void>): Promise<void> {
  let isOver = false
  const load = (async () => {
    while (!isOver) {
      await group.sendRound()
      await delay(LOAD_INTERVAL_MS)
    }
  })()
  try {
    await work()
  } finally {
    isOver = true
    await load
  }
}

async function untilShares(group: GroupOverHttp, expected: readonly number[], boundMs: number): Promise<void> {
  let found: number[] = []
  await eventually(
    async () => {
      found = await group.shares()
      return found.join() === expected.join()
    },
    () => `partitions per member ${expected.join(', ')}, found ${found.join(', ')}`,
    boundMs,
  )
}

/** Every acknowledged message came to some member; those a killed member did not commit came twice. */
async function untilAllCame(group: GroupOverHttp, members: GroupMembers): Promise<void> {
  const missing = () => {
    const came = new Set(members.deliveries.map(({ text }) => text))
    return group.acked.filter((text) => !came.has(text))
  }
  await eventually(
    () => missing().length === 0,
    () => `every acknowledged message, missing ${missing().length}: ${missing().slice(0, 20).join(' ')}`,
    PROCESS_START_MS,
  )
}
