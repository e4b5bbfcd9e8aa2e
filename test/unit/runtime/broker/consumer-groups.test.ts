import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ConsumerGroup, REBALANCING_TIMEOUT_US } from '../../../../src/runtime/broker/consumer-groups.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'

const NOW_US = 1_000_000

function groupOf(partitionCount: number, ...clientIds: number[]): ConsumerGroup {
  const group = new ConsumerGroup(partitionCount)
  for (const clientId of clientIds) group.join(clientId, NOW_US)
  return group
}

const canPoll = (group: ConsumerGroup, clientId: number, partitionId: number) =>
  group.startPoll(clientId, partitionId, false) !== null

const lists = (group: ConsumerGroup) => group.view().map(({ partitions }) => partitions)

describe('a join', () => {
  const SPLITS: readonly { partitions: number; members: number; lists: number[][] }[] = [
    { partitions: 4, members: 1, lists: [[0, 1, 2, 3]] },
    {
      partitions: 4,
      members: 2,
      lists: [
        [0, 1],
        [3, 2],
      ],
    },
    { partitions: 4, members: 3, lists: [[0, 1], [3], [2]] },
    { partitions: 4, members: 4, lists: [[0], [3], [2], [1]] },
    { partitions: 4, members: 5, lists: [[0], [3], [2], [1], []] },
    {
      partitions: 10,
      members: 2,
      lists: [
        [0, 1, 2, 3, 4],
        [9, 8, 7, 6, 5],
      ],
    },
    {
      partitions: 10,
      members: 3,
      lists: [
        [0, 1, 2, 3],
        [9, 8, 7],
        [4, 5, 6],
      ],
    },
    { partitions: 0, members: 2, lists: [[], []] },
  ]
  for (const split of SPLITS) {
    test(`deals ${split.partitions} partitions to ${split.members} members as Iggy does`, () => {
      const group = groupOf(split.partitions, ...Array.from({ length: split.members }, (_, index) => index + 10))
      assert.deepEqual(lists(group), split.lists)
    })
  }

  test('a second time changes nothing', () => {
    const group = groupOf(4, 1, 2)
    const { generation } = group
    assert.equal(group.join(1, NOW_US), false)
    assert.equal(group.generation, generation)
  })

  test('makes one new generation, however many partitions move', () => {
    const group = groupOf(10, 1)
    group.join(2, NOW_US)
    assert.equal(group.generation, 2n)
  })
})

describe('a leave', () => {
  test('deals all partitions out anew, in the order of joining', () => {
    const group = groupOf(4, 1, 2, 3, 4, 5)
    group.leave(1, 0)
    assert.deepEqual(lists(group), [[0], [1], [2], [3]])
    group.leave(2, 0)
    assert.deepEqual(lists(group), [[0, 3], [1], [2]])
    group.leave(3, 0)
    assert.deepEqual(lists(group), [
      [0, 2],
      [1, 3],
    ])
    group.leave(4, 0)
    assert.deepEqual(lists(group), [[0, 1, 2, 3]])
  })

  test('of who is no member is told', () => {
    assert.equal(groupOf(4, 1).leave(2, 0), false)
  })

  test('member numbers are not given again', () => {
    const group = groupOf(2, 1, 2)
    group.leave(1, 0)
    group.join(3, NOW_US)
    assert.deepEqual(
      group.view().map(({ id }) => id),
      [1, 2],
    )
  })
})

describe('a partition with messages in flight', () => {
  function promised(): ConsumerGroup {
    const group = groupOf(4, 1)
    group.polled(3, 9n)
    group.join(2, NOW_US)
    return group
  }

  test('stays with its owner, who may commit but not poll', () => {
    const group = promised()
    assert.deepEqual(lists(group), [[0, 1, 3], [2]])
    assert.deepEqual(group.sync(1), [0, 1])
    assert.equal(canPoll(group, 1, 3), false)
    assert.equal(group.canCommit(1, 3), true)
    assert.equal(canPoll(group, 2, 3), false)
  })

  test('moves when the commit catches up, not before', () => {
    const group = promised()
    group.committed(3, 8n)
    assert.deepEqual(lists(group), [[0, 1, 3], [2]])
    group.committed(3, 9n)
    assert.deepEqual(lists(group), [
      [0, 1],
      [2, 3],
    ])
    assert.equal(group.generation, 3n)
  })

  test('moves after the timeout, so a stuck member does not hold it for ever', () => {
    const group = promised()
    assert.equal(group.expirePromises(NOW_US + REBALANCING_TIMEOUT_US - 1), false)
    assert.equal(group.expirePromises(NOW_US + REBALANCING_TIMEOUT_US), true)
    assert.deepEqual(lists(group), [
      [0, 1],
      [2, 3],
    ])
  })

  test('moves at once when the owner leaves', () => {
    const group = promised()
    group.leave(1, 0)
    assert.deepEqual(lists(group), [[0, 1, 2, 3]])
    assert.equal(canPoll(group, 2, 3), true)
  })

  test('lets everybody keep what it has when another member leaves: what is free goes to who has least', () => {
    const group = groupOf(4, 1, 2, 3)
    assert.deepEqual(lists(group), [[0, 1], [3], [2]])
    group.polled(3, 9n)
    group.leave(1, NOW_US)
    // Even numbers would go to the first of the two, odd ones to the second.
    assert.deepEqual(lists(group), [
      [3, 0],
      [2, 1],
    ])
    assert.deepEqual(group.sync(2), [3, 0])
  })

  test('is not read by two when another member leaves: it moves when its owner is done', () => {
    const group = groupOf(4, 1)
    for (const partitionId of [0, 1, 2]) group.polled(partitionId, 9n)
    group.join(2, NOW_US)
    group.join(3, NOW_US)
    group.leave(3, NOW_US)
    assert.deepEqual(lists(group), [[0, 1, 2], [3]])
    assert.deepEqual(group.sync(1), [0, 1])
    assert.equal(canPoll(group, 2, 2), false)
    group.committed(2, 9n)
    assert.deepEqual(lists(group), [
      [0, 1],
      [3, 2],
    ])
  })

  test('does not keep a member empty-handed after a leave', () => {
    const group = groupOf(3, 1)
    for (const partitionId of [0, 1, 2]) group.polled(partitionId, 0n)
    group.join(2, NOW_US)
    group.join(3, NOW_US)
    assert.deepEqual(lists(group), [[0, 1, 2], [], []], 'joins wait for the commits')
    group.leave(3, NOW_US)
    assert.deepEqual(lists(group), [[0, 1], [2]])
    assert.equal(canPoll(group, 2, 2), true)
  })

  test('is waited for where its owner commits, also by a member that has nothing', () => {
    const group = groupOf(3, 1)
    group.polled(0, 0n)
    group.committed(0, 0n)
    for (const partitionId of [0, 1, 2]) group.polled(partitionId, 1n)
    group.join(2, NOW_US)
    group.join(3, NOW_US)
    group.leave(3, NOW_US)
    assert.deepEqual(lists(group), [[0, 1, 2], []])
    group.committed(2, 1n)
    assert.deepEqual(lists(group), [[0, 1], [2]])
  })

  test('is not taken from who has nothing else', () => {
    const group = groupOf(1, 1, 2, 3)
    group.leave(1, NOW_US)
    assert.deepEqual(lists(group), [[0], []])
    group.join(4, NOW_US)
    group.polled(0, 9n)
    group.leave(3, NOW_US)
    assert.deepEqual(lists(group), [[0], []])
    assert.equal(canPoll(group, 2, 0), true)
  })

  test('counts into the share of its owner when partitions are added', () => {
    const group = groupOf(3, 1)
    for (const partitionId of [0, 1, 2]) group.polled(partitionId, 0n)
    group.join(2, NOW_US)
    assert.deepEqual(lists(group), [[0, 1, 2], []])
    group.repartition(6, NOW_US)
    assert.deepEqual(lists(group), [
      [0, 1, 2],
      [3, 4, 5],
    ])
    assert.deepEqual(group.sync(1), [0, 1, 2])
  })
})

describe('a partition that was away', () => {
  /** Partition 2 of member 1 went to 2 and came back. */
  function returned(): ConsumerGroup {
    const group = groupOf(3, 1)
    group.join(2, NOW_US)
    assert.deepEqual(lists(group), [[0, 1], [2]])
    group.leave(2, NOW_US)
    assert.deepEqual(lists(group), [[0, 1, 2]])
    return group
  }

  test('is refused once to a member that goes on by its own count', () => {
    const group = returned()
    assert.equal(group.startPoll(1, 2, true), null)
    assert.equal(group.canCommit(1, 2), false)
    assert.notEqual(group.startPoll(1, 2, true), null)
    assert.equal(group.canCommit(1, 2), true)
  })

  test('is polled at once from the offset of the group', () => {
    const group = returned()
    assert.notEqual(group.startPoll(1, 2, false), null)
    assert.notEqual(group.startPoll(1, 2, true), null)
  })

  test('counts as away after a sync that shows it as if it had never been', () => {
    const group = returned()
    assert.deepEqual(group.sync(1), [0, 1, 2])
    assert.equal(group.startPoll(1, 2, true), null)
  })

  test('is known again when the member has seen the offset of the group, or was told that it is away', () => {
    const seen = returned()
    seen.sawOffset(1, 2)
    assert.notEqual(seen.startPoll(1, 2, true), null)
    const told = groupOf(3, 1, 2)
    assert.deepEqual(told.sync(1), [0, 1])
    told.leave(2, NOW_US)
    assert.notEqual(told.startPoll(1, 2, true), null)
  })

  test("was not seen in an offset that was read while it was another member's", () => {
    const group = groupOf(3, 1, 2)
    group.sync(2)
    group.sawOffset(2, 0)
    group.leave(1, NOW_US)
    assert.equal(group.startPoll(2, 0, true), null)
    assert.notEqual(group.startPoll(2, 0, true), null)
  })

  test('is not committed by what was handled before, also after a sync that showed it as gone', () => {
    const group = groupOf(3, 1, 2)
    assert.deepEqual(group.sync(1), [0, 1])
    group.leave(2, NOW_US)
    assert.equal(group.canCommit(1, 2), false)
    group.sawOffset(1, 2)
    assert.equal(group.canCommit(1, 2), true)
  })

  test('and was deleted and made anew is another one', () => {
    const group = groupOf(2, 1)
    const tenure = group.startPoll(1, 1, true) ?? -1
    group.repartition(1, NOW_US)
    group.repartition(2, NOW_US)
    assert.equal(group.isCurrent(1, tenure), false)
    assert.equal(group.startPoll(1, 1, true), null)
    assert.notEqual(group.startPoll(1, 1, true), null)
  })

  test('is what a commit without a partition means, so that it is refused', () => {
    const group = groupOf(2, 1)
    assert.deepEqual([group.take(1), group.take(1)], [0, 1])
    group.join(2, NOW_US)
    assert.deepEqual(lists(group), [[0], [1]])
    assert.equal(group.current(1), 1)
    assert.equal(group.canCommit(1, 1), false)
  })

  test('belongs to another tenure: what was still being read for the first one is not answered', () => {
    const group = groupOf(3, 1)
    const first = group.startPoll(1, 2, false) ?? -1
    assert.equal(group.isCurrent(2, first), true)
    group.join(2, NOW_US)
    group.leave(2, NOW_US)
    assert.equal(group.isCurrent(2, first), false)
  })
})

describe('polling in turn', () => {
  test('goes round the partitions a member may poll', () => {
    const group = groupOf(4, 1, 2)
    assert.deepEqual([group.take(1), group.take(1), group.take(1)], [0, 1, 0])
    assert.equal(group.current(1), 0)
    assert.deepEqual([group.take(2), group.take(2)], [3, 2])
  })

  test('a member without partitions has nothing to poll, a stranger neither', () => {
    const group = groupOf(1, 1, 2)
    assert.equal(group.take(2), null)
    assert.equal(group.take(99), null)
    assert.equal(group.sync(99), undefined)
  })
})

test('of a group that is gone nobody is a member, and nothing is answered', () => {
  const group = groupOf(2, 1, 2)
  const tenure = group.startPoll(1, 0, false) ?? -1
  group.dissolve()
  assert.deepEqual(group.view(), [])
  assert.equal(group.isCurrent(0, tenure), false)
  assert.equal(group.startPoll(1, 0, false), null)
})

test('another number of partitions deals everything out anew', () => {
  const group = groupOf(2, 1, 2)
  group.repartition(5, 0)
  assert.deepEqual(lists(group), [
    [0, 2, 4],
    [1, 3],
  ])
  group.repartition(1, 0)
  assert.deepEqual(lists(group), [[0], []])
})

test('whatever happens, every partition has one owner and the future is even', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = new SeededRandom(seed)
    let partitionCount = random.below(12)
    let nowUs = 0
    const group = new ConsumerGroup(partitionCount)
    const clients = new Set<number>()
    for (let step = 0; step < 60; step++) {
      nowUs += random.below(REBALANCING_TIMEOUT_US / 4)
      const clientId = random.below(8)
      const partitionId = random.below(Math.max(1, partitionCount))
      const before = group.generation
      switch (random.below(7)) {
        case 0:
        case 1:
          assert.equal(group.join(clientId, nowUs), !clients.has(clientId))
          clients.add(clientId)
          break
        case 2:
          assert.equal(group.leave(clientId, nowUs), clients.delete(clientId))
          break
        case 3:
          group.polled(partitionId, BigInt(random.below(20)))
          break
        case 4:
          group.committed(partitionId, BigInt(random.below(25)))
          break
        case 5:
          group.expirePromises(nowUs)
          break
        default:
          partitionCount = random.below(12)
          group.repartition(partitionCount, nowUs)
      }
      assert.ok(group.generation >= before, `seed ${seed}: the generation never goes back`)
      check(group, clients, partitionCount, `seed ${seed}, step ${step}`)
    }
  }
})

function check(group: ConsumerGroup, clients: ReadonlySet<number>, partitionCount: number, place: string): void {
  const view = group.view()
  assert.deepEqual(new Set(view.map(({ clientId }) => clientId)), clients, place)
  const owned = view.flatMap(({ partitions }) => partitions).sort((left, right) => left - right)
  const all = clients.size === 0 ? [] : Array.from({ length: partitionCount }, (_, id) => id)
  assert.deepEqual(owned, all, `${place}: each partition has one owner`)
  for (const partitionId of all) {
    const pollers = [...clients].filter((clientId) => canPoll(group, clientId, partitionId))
    assert.ok(pollers.length <= 1, `${place}: partition ${partitionId} is polled by one member at most`)
  }
  // Once every promise is kept, nobody has two more than another.
  group.expirePromises(Number.MAX_SAFE_INTEGER)
  const counts = group.view().map(({ partitions }) => partitions.length)
  if (counts.length > 0) assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, `${place}: ${counts}`)
}
