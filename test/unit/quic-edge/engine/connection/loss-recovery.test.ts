import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AckFrame } from '../../../../../src/quic-edge/engine/connection/ack-frame.ts'
import { LossRecovery, type PacketSpaces } from '../../../../../src/quic-edge/engine/connection/loss-recovery.ts'
import { PacketSpace } from '../../../../../src/quic-edge/engine/connection/packet-space.ts'
import { initialKeys } from '../../../../../src/quic-edge/engine/crypto/packet-keys.ts'
import { LEVEL, type Level } from '../../../../../src/quic-edge/engine/tls/api.ts'
import { TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { SeededRandom } from '../../../../support/seeded-random.ts'

const SIZE = 1200

class World {
  readonly spaces: PacketSpaces = [new PacketSpace(0, 25), new PacketSpace(1, 25), new PacketSpace(2, 25)]
  readonly handshake = { isComplete: true, isConfirmed: true, isAddressProven: true }
  readonly recovery: LossRecovery
  /** What became of packets: `+3` acknowledged, `-3` lost. */
  readonly fates: string[] = []

  constructor(role: 'client' | 'server' = 'server') {
    this.recovery = new LossRecovery(role, this.spaces, this.handshake, SIZE)
  }

  send(nowMs: number, level: Level = LEVEL.application, size = SIZE): number {
    const space = this.spaces[level]
    const number = space.takeNumber()
    const carried = {
      acknowledged: () => this.fates.push(`+${number}`),
      lost: () => this.fates.push(`-${number}`),
    }
    this.recovery.packetSent(space, number, size, [carried], nowMs)
    return number
  }

  acknowledge(nowMs: number, bounds: readonly number[], level: Level = LEVEL.application, encodedDelay = 0): void {
    const frame: AckFrame = { largest: bounds[1] ?? 0, encodedDelay, bounds }
    this.recovery.acknowledged(this.spaces[level], frame, nowMs)
  }
}

test('packets are lost when one sent three later arrived', () => {
  const world = new World()
  for (let count = 0; count < 5; count++) world.send(count)
  world.acknowledge(50, [3, 3])
  assert.deepEqual(world.fates, ['+3', '-0'])
  assert.equal(world.recovery.congestion.bytesInFlight, 3 * SIZE)
  world.acknowledge(51, [4, 4])
  assert.deepEqual(world.fates, ['+3', '-0', '+4', '-1'])
})

test('a packet that only acknowledged tells of losses too, and lets nobody make us look through all packets again', () => {
  const world = new World()
  for (let count = 0; count < 5; count++) world.send(count)
  const unkept = world.spaces[2].takeNumber()
  world.acknowledge(50, [unkept, unkept])
  assert.deepEqual(world.fates, ['-0', '-1', '-2'])
  assert.equal(world.spaces[2].sent.count, 2)
  world.acknowledge(51, [unkept, unkept])
  assert.equal(world.fates.length, 3)
})

test('packets are lost when they are out for a round trip and an eighth longer than one sent later', () => {
  const world = new World()
  world.send(0)
  world.send(8)
  world.acknowledge(108, [1, 1])
  assert.deepEqual(world.fates, ['+1'])
  assert.equal(world.recovery.deadlineMs(false), 112.5)
  world.recovery.timeout(112, false)
  assert.deepEqual(world.fates, ['+1'])
  world.recovery.timeout(112.5, false)
  assert.deepEqual(world.fates, ['+1', '-0'])
})

test('a loss timer that is due always finds something to do, however times are rounded', () => {
  for (let seed = 1; seed <= 3000; seed++) {
    const random = new SeededRandom(seed)
    const world = new World()
    // Thirds use all bits of a double, so that sums are rounded.
    let nowMs = (random.next() * 2 ** random.below(20)) / 3
    world.send(nowMs)
    nowMs += (random.next() * 30) / 3
    world.send(nowMs)
    nowMs += (random.next() * 300) / 3
    world.acknowledge(nowMs, [1, 1])
    const dueMs = world.spaces[2].lossMs
    if (dueMs === Number.POSITIVE_INFINITY) continue
    world.recovery.timeout(dueMs, false)
    assert.equal(world.spaces[2].lossMs, Number.POSITIVE_INFINITY, `seed ${seed}`)
  }
})

test('acknowledgements in several ranges are found in one pass, those of unknown packets ignored', () => {
  const world = new World()
  for (let count = 0; count < 10; count++) world.send(count)
  world.acknowledge(50, [8, 9, 4, 5, 0, 1])
  world.acknowledge(60, [0, 9])
  const arrived = world.fates.filter((fate) => fate.startsWith('+'))
  assert.deepEqual(arrived, ['+0', '+1', '+4', '+5', '+8', '+9', '+7'])
  assert.equal(world.recovery.congestion.bytesInFlight, 0)
})

test('a packet that was never sent cannot be acknowledged', () => {
  const world = new World()
  world.send(0)
  assert.throws(() => world.acknowledge(5, [0, 1]), { code: TRANSPORT_ERROR.protocolViolation })
})

test('after silence the oldest packets are sent once more, at doubling intervals', () => {
  const world = new World()
  for (let count = 0; count < 4; count++) world.send(0)
  const { recovery, spaces } = world
  assert.equal(recovery.deadlineMs(false), 999 + 25)
  recovery.timeout(1024, false)
  assert.equal(spaces[2].probeCount, 2)
  assert.deepEqual(world.fates, ['-0', '-1'])
  assert.equal(recovery.congestion.bytesInFlight, 4 * SIZE, 'a probe is no verdict')
  spaces[2].probeCount = 0
  world.send(1024)
  assert.equal(recovery.deadlineMs(false), 1024 + 2 * 1024)
  world.acknowledge(1100, [0, 4])
  world.send(1100)
  assert.equal(recovery.deadlineMs(false), 1100 + recovery.probeTimeoutMs, 'an answer ends the doubling')
})

test('a packet that was repeated by a probe is not repeated when it is lost then', () => {
  const world = new World()
  world.send(0)
  world.recovery.timeout(1024, false)
  for (let count = 0; count < 3; count++) world.send(1024)
  world.acknowledge(1100, [3, 3])
  assert.deepEqual(world.fates, ['-0', '+3'])
  assert.equal(world.recovery.lostPacketCount, 1)
})

test('while nothing may be sent, no probe is due: a deadline in the past would come again at once', () => {
  const world = new World()
  world.send(0, LEVEL.initial)
  assert.equal(world.recovery.deadlineMs(true), Number.POSITIVE_INFINITY)
  world.recovery.timeout(1e6, true)
  assert.equal(world.recovery.probeTimeoutCount, 0)
  assert.equal(world.recovery.deadlineMs(false), 999)
})

test('a client with nothing in flight probes while the server may wait for leave to send', () => {
  const world = new World('client')
  Object.assign(world.handshake, { isComplete: false, isConfirmed: false, isAddressProven: false })
  const [initial, handshake] = world.spaces
  initial.sendKeys = initialKeys(new Uint8Array(8)).client
  world.send(0, LEVEL.initial)
  world.acknowledge(50, [0, 0], LEVEL.initial)
  const dueMs = world.recovery.deadlineMs(false)
  assert.equal(dueMs, 150)
  world.recovery.timeout(dueMs, false)
  assert.equal(initial.probeCount, 1)
  handshake.sendKeys = initial.sendKeys
  world.recovery.timeout(world.recovery.deadlineMs(false), false)
  assert.equal(handshake.probeCount, 1)
  world.handshake.isAddressProven = true
  assert.equal(world.recovery.deadlineMs(false), Number.POSITIVE_INFINITY)
})

test('a client that is not confirmed probes with application data too: it may have another address by now', () => {
  const world = new World('client')
  Object.assign(world.handshake, { isConfirmed: false })
  world.send(0, LEVEL.handshake)
  world.recovery.timeout(world.recovery.deadlineMs(false), false)
  assert.equal(world.spaces[1].probeCount, 2)
  assert.equal(world.spaces[2].probeCount, 1)
})

test('losses over more than three probe timeouts, with nothing acknowledged between, shrink the window to its least', () => {
  for (const hasArrivalBetween of [false, true]) {
    const world = new World()
    world.send(0)
    world.acknowledge(100, [0, 0])
    for (const atMs of [200, 600, 1000, 1400, 1800]) world.send(atMs)
    if (hasArrivalBetween) world.acknowledge(1300, [3, 3])
    for (let count = 0; count < 4; count++) world.send(2000)
    world.acknowledge(2100, [8, 9])
    assert.equal(world.recovery.congestion.windowBytes === 2 * SIZE, !hasArrivalBetween)
  }
})

test('losses before the first measurement do not shrink the window to its least', () => {
  const world = new World()
  const { congestion } = world.recovery
  for (let count = 0; count < 5; count++) world.send(count * 2000)
  const unkept = world.spaces[2].takeNumber()
  world.acknowledge(9000, [unkept, unkept])
  assert.equal(world.recovery.roundTrip.hasSample, false)
  assert.equal(world.recovery.lostPacketCount, 5)
  assert.equal(congestion.windowBytes, 5 * SIZE)
})

test('only the largest packet that is acknowledged is measured, when it is news', () => {
  const world = new World()
  for (let count = 0; count < 6; count++) world.send(0)
  world.acknowledge(50, [5, 5])
  assert.equal(world.recovery.roundTrip.smoothedMs, 50)
  world.acknowledge(500, [5, 5, 3, 3])
  assert.ok(world.fates.includes('+3'))
  assert.equal(world.recovery.roundTrip.smoothedMs, 50)
})

test('after a pause there is no burst: the window is that of the start, or what is left of it', () => {
  const world = new World()
  const { congestion } = world.recovery
  let nowMs = 0
  for (let round = 0; round < 4; round++) {
    const first = world.spaces[2].nextNumber
    while (congestion.hasRoom) world.send(nowMs)
    nowMs += 10
    world.acknowledge(nowMs, [first, world.spaces[2].nextNumber - 1])
  }
  const windowBytes = congestion.windowBytes
  assert.ok(windowBytes > 100_000)
  nowMs += world.recovery.probeTimeoutMs - 10
  world.acknowledge(nowMs, [world.send(nowMs), world.spaces[2].nextNumber - 1])
  assert.equal(congestion.windowBytes, windowBytes, 'a short pause changes nothing')
  nowMs += world.recovery.probeTimeoutMs + 1
  world.send(nowMs)
  assert.equal(congestion.windowBytes, 10 * SIZE)
  world.send(nowMs)
  congestion.congested(nowMs, nowMs)
  assert.equal(congestion.windowBytes, 5 * SIZE)
  world.acknowledge(nowMs, [0, world.spaces[2].nextNumber - 1])
  world.send(nowMs + 10_000)
  assert.equal(congestion.windowBytes, 5 * SIZE, 'nothing is given')
})

test('delays that a peer claims are held to its promise once the handshake is confirmed', () => {
  const world = new World()
  world.send(0)
  world.acknowledge(100, [0, 0])
  world.send(200)
  // 800 ms in units of 8 µs: only 25 are taken off.
  world.acknowledge(1200, [1, 1], LEVEL.application, 100_000)
  assert.equal(world.recovery.roundTrip.smoothedMs, 100 + (975 - 100) / 8)
})

test('packets of a discarded space are neither lost nor in flight', () => {
  const world = new World()
  world.send(0, LEVEL.initial)
  world.send(0)
  world.recovery.discard(world.spaces[0])
  assert.equal(world.recovery.congestion.bytesInFlight, SIZE)
  assert.deepEqual(world.fates, [])
  world.recovery.discard(world.spaces[0])
  assert.equal(world.recovery.congestion.bytesInFlight, SIZE)
})
