/** The forwarder against a hostile link and upstream, by seed: I2 (once), I3 (in order), I4 (the books balance). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_BATCH, SyncWorld, type WorldOptions } from '../support/sync-world.ts'

const CALM: WorldOptions = {
  seed: 1,
  loseReply: 0,
  cutLink: 0,
  killEdge: 0,
  killUpstream: 0,
  forgetsUpTo: 0,
  foreignWrites: 0,
  poison: new Set(),
  deadly: new Set(),
  upstreamMaxCount: 1000,
  tellsBaseOffset: true,
  losesCursor: 0,
  leavesUnproven: 0,
  hasRetention: false,
  upstreamExpires: 0,
  remakesTopic: 0,
  dropsConfirmed: 0,
  restores: 0,
}
const HOSTILE = { loseReply: 0.08, cutLink: 0.02, killEdge: 0.01, killUpstream: 0.01, losesCursor: 0.3 }
const TOTAL = 300
const SEEDS = Number(process.env.EDGE_TEST_SEEDS ?? 40)

function play(options: WorldOptions): SyncWorld {
  const world = new SyncWorld(options)
  world.run(TOTAL)
  return world
}

function assertWhole(world: SyncWorld, without: ReadonlySet<bigint> = new Set()): void {
  const expected = Array.from({ length: TOTAL }, (_, index) => BigInt(index)).filter((offset) => !without.has(offset))
  assert.deepEqual(world.ownOffsets, expected, `seed ${world.options.seed}`)
  assert.equal(world.forwarder.view().state, 'caught-up', `seed ${world.options.seed}`)
}

function forSeeds(options: Partial<WorldOptions>, check: (world: SyncWorld) => void): void {
  for (let seed = 1; seed <= SEEDS; seed++) check(play({ ...CALM, ...options, seed }))
}

test('on a calm link every record arrives once, in few sends', () => {
  const world = play(CALM)
  assertWhole(world)
  assert.ok(world.sentOnWire <= TOTAL)
})

test('records arrive once and in order while replies are lost and both sides are killed', () => {
  forSeeds(HOSTILE, (world) => assertWhole(world))
})

test('records that were sent and are not proven any more after a kill are not sent again under new ids', () => {
  forSeeds({ ...HOSTILE, killEdge: 0.03, leavesUnproven: 0.7 }, (world) => assertWhole(world))
})

test('an upstream that forgets what it acknowledged gets it again', () => {
  forSeeds({ ...HOSTILE, forgetsUpTo: 60 }, (world) => assertWhole(world))
})

test('an upstream that names no offsets, and forgets, gets everything once', () => {
  forSeeds({ ...HOSTILE, forgetsUpTo: 60, tellsBaseOffset: false }, (world) => assertWhole(world))
})

test('records of others in the same partition do not hide ours', () => {
  forSeeds({ ...HOSTILE, foreignWrites: 0.3, forgetsUpTo: 40 }, (world) => assertWhole(world))
})

test('limits of the upstream are learned and the backlog drains', () => {
  forSeeds({ ...HOSTILE, upstreamMaxCount: 3 }, (world) => assertWhole(world))
})

test('refused records go to the dead letters and all others arrive once', () => {
  const poison = new Set([0n, 17n, 18n, 150n, 299n])
  forSeeds({ ...HOSTILE, poison }, (world) => {
    assertWhole(world, poison)
    assert.deepEqual(new Set(world.deadLetters), poison)
  })
})

test('a record at which the upstream hangs up every time is found, set aside, and all others arrive once', () => {
  const deadly = new Set([5n, 120n])
  forSeeds({ ...HOSTILE, deadly }, (world) => {
    assertWhole(world, deadly)
    assert.deepEqual(new Set(world.deadLetters), deadly)
  })
})

test('what the retention of the upstream took is not sent again', () => {
  forSeeds({ ...HOSTILE, losesCursor: 0, upstreamExpires: 0.02 }, (world) => assertWhole(world))
})

/** Seeds that once showed a fault; kept because they are quick, as long as the world draws its chances in the same order. */
const RETENTION_KNOWN: readonly (readonly [number, string])[] = [
  [550, 'what the upstream forgot had left the local log by the time it was looked for, and nothing was said'],
  [77, 'the cursor kept the place of a record that the upstream forgot, and what came after passed for another topic'],
]
const RETENTION = { ...HOSTILE, losesCursor: 0, hasRetention: true, forgetsUpTo: 30 }

function assertNothingIsMissingInSilence(world: SyncWorld): void {
  const there = new Set(world.ownOffsets)
  for (let offset = 0n; offset < TOTAL; offset++) {
    if (there.has(offset)) continue
    const reported = world.reports.some(
      (report) => (report.kind === 'gap' || report.kind === 'forgotten') && offset < report.end,
    )
    assert.ok(reported && offset < world.logStart, `seed ${world.options.seed}: ${offset} is missing in silence`)
  }
}

test('local retention behind the cursor leaves no record out unless the upstream forgot it, and then says so', () => {
  forSeeds(RETENTION, assertNothingIsMissingInSilence)
})

for (const [seed, fault] of RETENTION_KNOWN) {
  test(`seed ${seed}: ${fault}`, () => assertNothingIsMissingInSilence(play({ ...CALM, ...RETENTION, seed })))
}

const REMADE = { loseReply: 0.2, cutLink: 0.1, remakesTopic: 0.03 }
/** In both the reply of the first send to the new topic got lost, with more records than had been confirmed to the old one. */
const REMADE_KNOWN = [533, 892]

function assertNothingIsMissing(world: SyncWorld): void {
  assert.equal(world.ownOffsetsOfAnyIncarnation.size, TOTAL, `seed ${world.options.seed}`)
  assert.equal(world.forwarder.view().state, 'caught-up', `seed ${world.options.seed}`)
}

test('a topic that somebody makes anew, again and again, has every record in the end', () => {
  forSeeds(REMADE, assertNothingIsMissing)
  forSeeds({ ...REMADE, tellsBaseOffset: false }, assertNothingIsMissing)
})

test('nor does it lack any where it forgets as well, before it is seen to be another one or after', () => {
  const forgetful = { ...REMADE, killUpstream: 0.01, forgetsUpTo: 40 }
  forSeeds(forgetful, assertNothingIsMissing)
  forSeeds({ ...forgetful, tellsBaseOffset: false }, assertNothingIsMissing)
})

for (const seed of REMADE_KNOWN) {
  test(`seed ${seed}: what lay before the first send to a topic that was made anew was left out`, () =>
    assertNothingIsMissing(play({ ...CALM, ...REMADE, seed })))
}

test('after an older copy of the data was restored, what it grew by goes up, however late the upstream is reached', () => {
  const restored = { loseReply: 0.05, cutLink: 0.05, killEdge: 0.05, restores: 0.005 }
  let againCount = 0
  const check = (world: SyncWorld) => {
    assert.deepEqual(world.missingOffsets, [], `seed ${world.options.seed}`)
    assert.equal(world.forwarder.view().state, 'caught-up', `seed ${world.options.seed}`)
    againCount += world.againCount
  }
  forSeeds(restored, check)
  forSeeds({ ...restored, tellsBaseOffset: false, foreignWrites: 0.1 }, check)
  // Where a copy took the place of one that was restored itself, the search by halves may miss a part.
  assert.ok(againCount <= SEEDS, `${againCount} came again`)
})

/** What each send that was dropped costs at most: itself, and what came behind it until that was seen, once more. */
const AGAIN_PER_DROP = 2 * MAX_BATCH

test('of a topic that keeps nothing of one send and all of the next, only what is near comes twice', () => {
  const full = { loseReply: 0.05, cutLink: 0.02, dropsConfirmed: 0.1 }
  forSeeds(full, (world) => {
    assertNothingIsMissing(world)
    const againCount = world.upstream.length - TOTAL
    assert.ok(againCount <= world.droppedSends * AGAIN_PER_DROP, `seed ${world.options.seed}: ${againCount} come again`)
  })
  forSeeds({ ...full, killUpstream: 0.01, forgetsUpTo: 40 }, assertNothingIsMissing)
  forSeeds({ ...full, remakesTopic: 0.01 }, assertNothingIsMissing)
})
