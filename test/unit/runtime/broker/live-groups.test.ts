import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Topic } from '../../../../src/log/index.ts'
import { LiveGroups, MAX_GROUP_PLACES } from '../../../../src/runtime/broker/live-groups.ts'

const topicOf = (partitionCount: number) => ({ partitions: { length: partitionCount } }) as Topic
const TIMEOUT_US = 1_000_000

test('groups that nobody is a member of any more hold nothing of their partitions', () => {
  const groups = new LiveGroups(TIMEOUT_US)
  const topic = topicOf(1000)
  // Each alone would fit sixty-five times.
  for (let groupId = 0; groupId < 1000; groupId++) {
    groups.join(topic, groupId, 7, 0)
    const group = groups.find(topic, groupId)
    assert.equal(group?.assignment.slotCount, 1000)
    assert.ok(group)
    groups.leave(group, 7, 0)
    assert.equal(group.assignment.slotCount, 0)
  }
})

test('a group that is joined again deals out as many partitions as there are by then, in a later generation', () => {
  const groups = new LiveGroups(TIMEOUT_US)
  const topic = topicOf(4)
  groups.join(topic, 1, 7, 0)
  const assignment = groups.find(topic, 1)?.assignment
  assert.ok(assignment)
  const tenure = assignment.startPoll(7, 2, false)
  assert.ok(tenure !== null)
  groups.leaveAll(7, 0)
  assert.equal(assignment.isCurrent(2, tenure), false)
  assignment.repartition(3, 0)
  const { generation } = assignment
  groups.join(topic, 1, 8, 0)
  assert.deepEqual(assignment.sync(8), [0, 1, 2])
  assert.equal(assignment.isCurrent(2, tenure), false)
  assert.ok(assignment.generation > generation)
})

test('members and partitions of all groups together are bounded; who is a member stays one', () => {
  const groups = new LiveGroups(TIMEOUT_US)
  const topic = topicOf(1000)
  const fitting = Math.floor(MAX_GROUP_PLACES / (1000 + 8))
  for (let groupId = 0; groupId < fitting; groupId++) groups.join(topic, groupId, 1, 0)
  const refused = { code: 'EDGE_LIMIT_REACHED', message: /at most 65536 places/ }
  assert.throws(() => groups.join(topic, fitting, 1, 0), refused)
  assert.equal(groups.join(topic, 0, 1, 0), false)
  // Of what was refused nothing is kept.
  assert.equal([...groups.ofClient(1)].length, fitting)
  assert.equal([...groups.ofTopic(topic)].length, fitting)
})

test('a thousand members in many groups are as many places as they take', () => {
  const groups = new LiveGroups(TIMEOUT_US)
  const topic = topicOf(1)
  const groupCount = 64
  const fitting = (MAX_GROUP_PLACES - groupCount) / 8
  const join = (clientId: number) => groups.join(topic, clientId % groupCount, clientId, 0)
  for (let clientId = 1; clientId <= fitting; clientId++) join(clientId)
  assert.throws(() => join(fitting + 1), { code: 'EDGE_LIMIT_REACHED' })
  groups.leaveAll(1, 0)
  assert.equal(join(fitting + 1), true)
})

test('who is suspended keeps its places, so that all may come back within the bound', () => {
  const groups = new LiveGroups(TIMEOUT_US)
  const topic = topicOf(1000)
  const fitting = Math.floor(MAX_GROUP_PLACES / (1000 + 8))
  for (let groupId = 0; groupId < fitting; groupId++) groups.join(topic, groupId, 1, 0)
  for (const group of groups.ofClient(1)) groups.suspend(group, 1, 0)
  assert.throws(() => groups.join(topic, fitting, 2, 0), { code: 'EDGE_LIMIT_REACHED' })
  for (const group of groups.ofClient(1)) assert.equal(groups.resume(group, 1, 0), true)
  const places = [...groups.ofTopic(topic)].map(({ assignment }) => assignment.slotCount + assignment.view().length * 8)
  assert.equal(
    places.reduce((sum, each) => sum + each),
    fitting * (1000 + 8),
  )
})

test('partitions that are added to a topic are places of its groups too, also while they are being made', async () => {
  const groups = new LiveGroups(TIMEOUT_US)
  const topic = topicOf(1)
  for (let groupId = 0; groupId < 100; groupId++) groups.join(topic, groupId, 1, 0)
  const fails = () => Promise.reject(new Error('no room'))
  await assert.rejects(groups.growing(topic, 700, fails), { code: 'EDGE_LIMIT_REACHED' })
  const made = Promise.withResolvers<void>()
  const growing = groups.growing(topic, 600, () => made.promise)
  for (let groupId = 100; groupId < 107; groupId++) groups.join(topic, groupId, 1, 0)
  assert.throws(() => groups.join(topic, 107, 1, 0), { code: 'EDGE_LIMIT_REACHED' })
  made.resolve()
  await growing
  // What was not made after all is free again.
  await assert.rejects(groups.growing(topic, 500, fails), { message: 'no room' })
  assert.equal(groups.join(topic, 107, 1, 0), true)
})
