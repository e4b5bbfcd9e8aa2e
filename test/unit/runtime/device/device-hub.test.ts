import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Logger, silentLogger } from '../../../../src/logger.ts'
import type { QuicSession, QuicStream } from '../../../../src/quic-edge/index.ts'
import { DEVICE_DEFAULTS, startDeviceHub } from '../../../../src/runtime/device/index.ts'
import {
  decodeFrame,
  EDGE_CODES,
  EdgeFrameAssembler,
  encodeFrame,
  type Frame,
} from '../../../../src/sdk/wire/edge/index.ts'
import { MemoryDeviceBroker } from '../../../support/memory-device-broker.ts'

const alias: Frame = { type: 'alias', alias: 1, topic: 'sensors/a', kind: 0 }
const publish: Frame = { type: 'publish', alias: 1, sequence: 1, time: null, value: Buffer.from('one') }

for (const end of ['a link that breaks', 'a newer session'] as const) {
  test(`what ${end} leaves under way settles before the next session is told what is held`, async () => {
    const { broker, connect } = bench()
    const first = connect()
    first.send(hello(broker), alias)
    await turns()
    broker.settlesAtOnce = false
    first.send(publish)
    if (end === 'a link that breaks') first.drop()
    const second = connect()
    second.send(hello(broker), alias)
    await turns()
    assert.deepEqual(second.got, [], 'nothing is said of what is not known yet')
    broker.settle()
    await turns()
    assert.deepEqual(second.welcome()?.lanes, [{ lane: 1, sequence: 1 }])
    second.send(publish)
    await turns()
    assert.equal(broker.stored.length, 1)
  })
}

test('while writes of an ended session do not settle, newer ones are told to come back, each of them', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const { broker, connect } = bench()
  const first = connect()
  first.send(hello(broker), alias)
  await turns()
  broker.settlesAtOnce = false
  first.send(publish)
  for (const _ of ['second', 'third']) {
    const next = connect()
    next.send(hello(broker), alias, publish)
    await turns()
    t.mock.timers.tick(DEVICE_DEFAULTS.takeoverTimeoutMs)
    await turns()
    t.mock.timers.tick(DEVICE_DEFAULTS.refusalDelayMs)
    await turns()
    assert.deepEqual(
      next.got.map((frame) => (frame.type === 'error' ? [frame.code, frame.retryMs] : frame.type)),
      [[14, 5000]],
    )
    t.mock.timers.tick(DEVICE_DEFAULTS.closeLingerMs)
    assert.equal(next.closedWith(), 14)
  }
  broker.settle()
  const last = connect()
  last.send(hello(broker), alias, publish)
  await turns()
  assert.deepEqual(last.welcome()?.lanes, [{ lane: 1, sequence: 1 }])
  assert.equal(broker.stored.length, 1)
})

test('a device that gives up one reading after the other is told of in one line', async () => {
  const lines: unknown[] = []
  const { broker, connect } = bench({ ...silentLogger, warn: (event, fields) => lines.push([event, fields]) })
  const device = connect()
  device.send(hello(broker))
  await turns()
  for (let first = 1; first <= 9; first++) device.send({ type: 'skip', lane: 1, first, count: 1, why: 0 })
  assert.deepEqual(lines, [
    [
      'device.readings.lost',
      { device: 'dev-1', reason: 'skipped-overflow', lane: 1, first_sequence: 1, message_count: 1 },
    ],
  ])
})

test('strangers from one network are bounded, and the one that is refused is told why', () => {
  const { connect } = bench()
  const { maxUnknownSessionsPerPeer, maxUnknownSessions } = DEVICE_DEFAULTS
  const fromOneNetwork = Array.from({ length: maxUnknownSessionsPerPeer }, (_, at) => connect(`[2001:db8::${at}]:4000`))
  assert.ok(fromOneNetwork.every((link) => link.closedWith() === undefined))
  assert.equal(connect('[2001:db8::ffff]:4000').closedWith(), EDGE_CODES.limitReached.code)
  for (let at = maxUnknownSessionsPerPeer; at < maxUnknownSessions; at++)
    assert.equal(connect(`192.0.2.${at}:4000`).closedWith(), undefined)
  assert.equal(connect('198.51.100.1:4000').closedWith(), EDGE_CODES.limitReached.code)
})

interface Link {
  readonly got: Frame[]
  send(...frames: Frame[]): void
  /** The link breaks. */
  drop(): void
  welcome(): Frame<'welcome'> | undefined
  closedWith(): number | undefined
}

/** Sessions of one stream each, without a network. */
function bench(logger: Logger = silentLogger): { broker: MemoryDeviceBroker; connect(peer?: string): Link } {
  const broker = new MemoryDeviceBroker()
  const hub = startDeviceHub({ broker, logger })
  let sessions = 0
  const connect = (peer?: string): Link => {
    const got: Frame[] = []
    let closedWith: number | undefined
    const assembler = new EdgeFrameAssembler(65_535)
    const stream: QuicStream = {
      id: 0,
      unsentBytes: 0,
      write: (bytes) => {
        assembler.push(bytes, (frameView) => got.push(decodeFrame(frameView) as Frame) > 0)
        return true
      },
      end() {},
      reset() {},
      grant() {},
    }
    const session = { id: ++sessions, path: '/edge', peer, close: (code: number) => (closedWith = code) }
    const events = hub.pathHandler.opened(session as unknown as QuicSession)
    const reading = events?.streamOpened(stream)
    return {
      got,
      send: (...frames) => reading?.data(Buffer.concat(frames.map((frame) => encodeFrame(frame)))),
      drop() {
        reading?.closed(null)
        events?.closed(0, 'the link broke')
      },
      welcome: () => got.find((frame) => frame.type === 'welcome'),
      closedWith: () => closedWith,
    }
  }
  return { broker, connect }
}

function hello(broker: MemoryDeviceBroker): Frame<'hello'> {
  return { type: 'hello', minVersion: 1, maxVersion: 1, name: 'dev-1', auth: broker.token, epoch: 7, lanes: [] }
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve()
}
