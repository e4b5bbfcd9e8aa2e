import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FlashBudget } from '../../../../src/log/core/flash-budget.ts'
import { GroupCommit } from '../../../../src/log/core/group-commit.ts'

const OPTIONS = {
  lingerMinUs: 150,
  lingerShare: 0.15,
  flushIntervalUs: 200_000,
  flushSizeBytes: 65_536,
  urgentBytes: 1 << 20,
}

function commit(perDayBytes = 0): GroupCommit {
  return new GroupCommit(OPTIONS, new FlashBudget(perDayBytes, 0))
}

/** One sync that covers everything. */
function sync(group: GroupCommit, startUs: number, endUs: number): void {
  group.written()
  group.syncStarted(0, 0, startUs)
  group.syncEnded(endUs)
}

test('a lone durable append is synced at once', () => {
  const group = commit()
  assert.equal(group.appended(false, 100, 0), true)
  assert.deepEqual(group.decide(0), { isWriteDue: true, isSyncDue: true, againInUs: undefined })
})

test('a group lingers for as many as the last one held, and no longer than its share of the last sync', () => {
  const group = commit()
  for (let each = 0; each < 4; each++) group.appended(false, 100, 0)
  sync(group, 0, 10_000)
  assert.equal(group.appended(false, 100, 10_000), true)
  assert.deepEqual(group.decide(10_100), { isWriteDue: false, isSyncDue: false, againInUs: 1400 })
  group.appended(false, 100, 10_200)
  group.appended(false, 100, 10_200)
  assert.equal(group.appended(false, 100, 10_200), true)
  assert.equal(group.decide(10_200).isSyncDue, true)
})

test('a buffered append is written in the next turn and synced within the flush interval', () => {
  const group = commit()
  assert.equal(group.appended(true, 100, 0), true)
  assert.deepEqual(group.decide(0), { isWriteDue: true, isSyncDue: false, againInUs: 200_000 })
  group.written()
  assert.equal(group.decide(199_999).isSyncDue, false)
  assert.equal(group.decide(200_000).isSyncDue, true)
})

test('enough buffered bytes are synced before the interval is over', () => {
  const group = commit()
  group.appended(true, 70_000, 0)
  assert.equal(group.decide(10).isSyncDue, true)
})

test('syncs for the sake of their size keep a pause between them', () => {
  const group = commit()
  group.appended(true, 70_000, 0)
  sync(group, 0, 400)
  group.appended(true, 70_000, 500)
  assert.deepEqual(group.decide(500), { isWriteDue: true, isSyncDue: false, againInUs: 9900 })
  group.written()
  assert.equal(group.decide(10_300).againInUs, 1000)
  assert.equal(group.decide(10_400).isSyncDue, true)
})

test('the pause holds up neither a durable append nor what is asked for, nor buffers that must come free', () => {
  for (const urge of [
    (group: GroupCommit) => group.appended(false, 100, 500),
    (group: GroupCommit) => group.force(),
    (group: GroupCommit) => group.appended(true, OPTIONS.urgentBytes, 500),
  ]) {
    const group = commit()
    group.appended(true, 70_000, 0)
    sync(group, 0, 400)
    group.appended(true, 70_000, 500)
    urge(group)
    assert.equal(group.decide(500).isSyncDue, true)
  }
})

test('one sync runs at a time, and buffered appends are written meanwhile', () => {
  const group = commit()
  group.appended(false, 100, 0)
  group.written()
  group.syncStarted(0, 0, 0)
  group.appended(false, 100, 50)
  assert.deepEqual(group.decide(60), { isWriteDue: false, isSyncDue: false, againInUs: undefined })
  group.appended(true, 100, 70)
  assert.deepEqual(group.decide(80), { isWriteDue: true, isSyncDue: false, againInUs: undefined })
})

test('over the flash budget a sync waits, a second at most, unless the buffers must come free', () => {
  const budget = new FlashBudget(24 * 1024 * 1024, 0)
  budget.spend(100 * 1024 * 1024, 0)
  const group = new GroupCommit(OPTIONS, budget)
  group.appended(false, 100, 0)
  assert.deepEqual(group.decide(0), { isWriteDue: false, isSyncDue: false, againInUs: 1_000_000 })
  assert.equal(group.appended(false, 1 << 20, 10), true)
  assert.equal(group.decide(10).isSyncDue, true)
})

test('after a failure everything is due again at once', () => {
  const group = commit()
  group.appended(false, 100, 0)
  group.written()
  group.syncStarted(0, 0, 0)
  group.restarted(1, 100, 50)
  assert.equal(group.decide(50).isSyncDue, true)
})

test('a budget that is in debt for hours delays each sync by a second, not again and again', () => {
  const budget = new FlashBudget(24 * 1024 * 1024, 0)
  budget.spend(100 * 1024 * 1024, 0)
  const group = new GroupCommit(OPTIONS, budget)
  group.appended(false, 100, 0)
  assert.deepEqual(group.decide(0), { isWriteDue: false, isSyncDue: false, againInUs: 1_000_000 })
  group.appended(false, 100, 400_000)
  assert.equal(group.decide(400_000).againInUs, 600_000)
  assert.equal(group.decide(1_000_000).isSyncDue, true)
  sync(group, 1_000_000, 1_010_000)
  group.appended(false, 100, 1_100_000)
  assert.equal(group.decide(1_100_000).againInUs, 1_000_000)
  assert.equal(group.decide(2_100_000).isSyncDue, true)
})
