import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LiveGroups, MAX_GROUP_PLACES } from '../../../../src/runtime/broker/live-groups.ts'

const place = (groupId: number) => ({ streamId: 0, topicId: 0, groupId })
const TIMEOUT_US = 1_000_000

test('groups that nobody is a member of any more hold nothing of their partitions', () => {
  const groups = new LiveGroups(TIMEOUT_US)
  // Each alone would fit sixty-five times.
  for (let groupId = 0; groupId < 1000; groupId++) {
    groups.join(place(groupId), 1000, 7, 0)
    const group = groups.find(0, 0, groupId)
    assert.equal(group?.assignment.slotCount, 1000)
    assert.ok(group)
    groups.leave(group, 7, 0)
    assert.equal(group.assignment.slotCount, 0)
  }
})

test('a group that is joined again deals out as many partitions as there are by then, in a later generation', () => {
  const groups = new LiveGroups(TIMEOUT_US)
  groups.join(place(1), 4, 7, 0)
  const assignment = groups.find(0, 0, 1)?.assignment
  assert.ok(assignment)
  const tenure = assignment.startPoll(7, 2, false)
  assert.ok(tenure !== null)
  groups.leaveAll(7, 0)
  assert.equal(assignment.isCurrent(2, tenure), false)
  assignment.repartition(3, 0)
  const { generation } = assignment
  groups.join(place(1), 3, 8, 0)
  assert.deepEqual(assignment.sync(8), [0, 1, 2])
  assert.equal(assignment.isCurrent(2, tenure), false)
  assert.ok(assignment.generation > generation)
})

test('members and partitions of all groups together are bounded; who is a member stays one', () => {
  const groups = new LiveGroups(TIMEOUT_US)
  const partitionCount = 1000
  const fitting = Math.floor(MAX_GROUP_PLACES / (partitionCount + 8))
  for (let groupId = 0; groupId < fitting; groupId++) groups.join(place(groupId), partitionCount, 1, 0)
  const refused = { code: 'EDGE_LIMIT_REACHED', message: /at most 65536 places/ }
  assert.throws(() => groups.join(place(fitting), partitionCount, 1, 0), refused)
  assert.equal(groups.join(place(0), partitionCount, 1, 0), false)
  // Of a client that was refused nothing is kept.
  assert.equal([...groups.ofClient(1)].length, fitting)
})

test('a thousand members in many groups are as many places as they take', () => {
  const groups = new LiveGroups(TIMEOUT_US)
  const groupCount = 64
  const fitting = (MAX_GROUP_PLACES - groupCount) / 8
  const join = (clientId: number) => groups.join(place(clientId % groupCount), 1, clientId, 0)
  for (let clientId = 1; clientId <= fitting; clientId++) join(clientId)
  assert.throws(() => join(fitting + 1), { code: 'EDGE_LIMIT_REACHED' })
  groups.leaveAll(1, 0)
  assert.equal(join(fitting + 1), true)
})
