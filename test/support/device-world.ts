/**
 * A device with a bounded queue, a link that loses what is under way, and an edge whose log forgets what it has not synced:
 * the real session core between them. One seed, one run.
 */
import { EdgeError } from '../../src/errors.ts'
import type { ProducerLane } from '../../src/log/api.ts'
import { DeviceSession } from '../../src/runtime/device/core/device-session.ts'
import type { Effect, Input, Moment, SequenceTag } from '../../src/runtime/device/core/exchange.ts'
import type { Lane } from '../../src/runtime/device/core/lane.ts'
import type { RecordBatch } from '../../src/sdk/wire/batch.ts'
import { decodeFrame, encodeFrame, type Frame } from '../../src/sdk/wire/edge/index.ts'
import { SeededRandom } from './seeded-random.ts'

const LANE = 1
const STREAM = 0
const QUEUE_CAPACITY = 12
const MAX_DRAIN_STEPS = 10_000

interface Entry extends SequenceTag {
  /** null: disposed of without readings. */
  readonly values: readonly number[] | null
}
interface Reading {
  readonly sequence: number
  readonly value: number
}

export interface WorldResult {
  readonly stored: readonly number[]
  readonly published: readonly number[]
  /** Values that the device gave up or that were refused for good: counted, so not silently missing. */
  readonly counted: ReadonlySet<number>
}

/** Runs the seed and returns what the log holds in the end, with everything that was ever published. */
export function runDeviceWorld(
  seed: number,
  steps: number,
  createLane?: (have: number, durable: number) => Lane,
): WorldResult {
  const world = new DeviceWorld(seed, createLane)
  for (let step = 0; step < steps; step++) world.step()
  world.drain()
  return world.result()
}

class DeviceWorld {
  readonly #random: SeededRandom
  readonly #createLane: ((have: number, durable: number) => Lane) | undefined
  readonly #log = new SimulatedLog()
  readonly #published: number[] = []
  readonly #counted = new Set<number>()
  readonly #valueOf = new Map<string, number>()
  #session: DeviceSession | undefined
  #toEdge: Frame[] = []
  #toDevice: Frame[] = []
  #nowMs = 0
  #hasFaults = true
  // the device
  #epoch = 1
  #queue: Reading[] = []
  #nextSequence = 1
  #acked = 0
  #sent = 1

  constructor(seed: number, createLane: ((have: number, durable: number) => Lane) | undefined) {
    this.#random = new SeededRandom(seed)
    this.#createLane = createLane
  }

  step(): void {
    this.#nowMs += 1000
    const chance = this.#random.next()
    if (chance < 0.32) this.#measure()
    else if (chance < 0.6 && this.#session !== undefined) this.#sendNext()
    else if (chance < 0.78 && this.#toEdge.length > 0) this.#edgeTakes()
    else if (chance < 0.86 && this.#session !== undefined) this.#sync()
    else if (chance < 0.94 && this.#toDevice.length > 0) this.#deviceTakes()
    else if (chance < 0.96 || this.#session === undefined) this.#reconnect()
    else if (chance < 0.97) this.#reboot()
  }

  /** Without faults, until the device has nothing left. */
  drain(): void {
    this.#hasFaults = false
    this.#reconnect()
    for (let step = 0; step < MAX_DRAIN_STEPS; step++) {
      this.#nowMs += 1000
      if (this.#toDevice.length > 0) this.#deviceTakes()
      else if (this.#toEdge.length > 0) this.#edgeTakes()
      else if (this.#log.hasUnsynced) this.#sync()
      else if (this.#session === undefined) this.#reconnect()
      else if (this.#queue.length > 0) this.#sendNext()
      else return
    }
    throw new Error('the device never got rid of its queue')
  }

  result(): WorldResult {
    const entries = this.#log.durable
    const stored = entries.flatMap((entry) => entry.values ?? [])
    for (const { epoch, firstSequence, sequenceCount } of entries.filter((one) => one.values === null)) {
      for (let at = 0; at < sequenceCount; at++) {
        const value = this.#valueOf.get(`${epoch}:${firstSequence + at}`)
        if (value !== undefined) this.#counted.add(value)
      }
    }
    return { stored, published: this.#published, counted: this.#counted }
  }

  // ---- the device

  #measure(): void {
    const value = this.#published.length + 1
    this.#published.push(value)
    this.#valueOf.set(`${this.#epoch}:${this.#nextSequence}`, value)
    this.#queue.push({ sequence: this.#nextSequence++, value })
    if (this.#queue.length <= QUEUE_CAPACITY) return
    const [dropped] = this.#queue.splice(this.#random.below(this.#queue.length), 1)
    if (dropped !== undefined) this.#counted.add(dropped.value)
  }

  /** Up to four readings without a gap; what was dropped before them is skipped. */
  #sendNext(): void {
    const rest = this.#queue.filter(({ sequence }) => sequence >= this.#sent)
    const [next] = rest
    if (next === undefined) return
    if (next.sequence > this.#sent) {
      const count = next.sequence - this.#sent
      this.#toEdge.push({ type: 'skip', lane: LANE, first: this.#sent, count, why: 0 })
    }
    const readings: Reading[] = []
    for (const reading of rest.slice(0, 1 + this.#random.below(4))) {
      if (reading.sequence !== next.sequence + readings.length) break
      readings.push(reading)
    }
    const values = readings.map(({ value }) => value)
    this.#toEdge.push({ type: 'series', alias: 1, sequence: next.sequence, time: null, intervalMs: 1000, values })
    this.#sent = next.sequence + readings.length
  }

  #deviceTakes(): void {
    const frame = this.#toDevice.shift()
    if (frame?.type === 'welcome') this.#held(frame.lanes.find((one) => one.lane === LANE)?.sequence ?? 0)
    else if (frame?.type === 'ack') this.#held(frame.upTo)
    else if (frame?.type === 'nack' && frame.retryMs !== null) this.#sent = frame.first
  }

  #held(upTo: number): void {
    this.#acked = Math.max(this.#acked, upTo)
    this.#queue = this.#queue.filter(({ sequence }) => sequence > this.#acked)
    this.#sent = Math.max(this.#sent, this.#acked + 1)
  }

  /** Without its queue: what was in it is lost, and the numbering begins anew. */
  #reboot(): void {
    for (const { value } of this.#queue) this.#counted.add(value)
    this.#queue = []
    this.#nextSequence = 1
    this.#acked = 0
    this.#epoch++
    this.#disconnect()
  }

  #reconnect(): void {
    this.#disconnect()
    if (this.#hasFaults && this.#random.chance(0.3)) this.#log.crash()
    // The older session's writes settle before the newer one is told what is held.
    this.#log.sync()
    const options = this.#createLane === undefined ? {} : { createLane: this.#createLane }
    this.#session = new DeviceSession({ startedMs: this.#nowMs, ...options })
    const lanes = [{ lane: LANE, sequence: this.#acked }]
    const hello = { minVersion: 1, maxVersion: 1, name: 'dev', auth: new Uint8Array(16), epoch: this.#epoch, lanes }
    this.#feed({ type: 'hello', ...hello })
    const fields = [{ name: 'n', unit: '', scale: 0 }]
    this.#feed({ type: 'alias', alias: 1, topic: 'a/b', kind: 3, options: { fields, storedAs: 2 } })
    this.#sent = this.#acked + 1
    // Half of the time the device waits for `welcome`, else it sends again at once.
    if (this.#random.chance(0.5)) while (this.#toDevice.length > 0) this.#deviceTakes()
  }

  #disconnect(): void {
    this.#session = undefined
    this.#toEdge = []
    this.#toDevice = []
  }

  // ---- the edge

  #edgeTakes(): void {
    const frame = this.#toEdge.shift()
    if (frame !== undefined) this.#feed(frame)
  }

  #sync(): void {
    const results = this.#hasFaults && this.#random.chance(0.1) ? this.#log.failSync() : this.#log.sync()
    this.#step({ type: 'settled', results })
  }

  /** Through bytes and back, as on the wire. */
  #feed(frame: Frame): void {
    const bytes = encodeFrame(frame)
    const decoded = decodeFrame(bytes.subarray(bytes.byteLength > 25 ? 2 : 1))
    if (decoded.type !== 'ignorable') {
      this.#step({ type: 'frame', stream: STREAM, frame: decoded, sizeBytes: bytes.byteLength })
    }
  }

  #step(input: Input): void {
    const effects = this.#session?.step(input, this.#moment()) ?? []
    for (const effect of effects) this.#carryOut(effect)
  }

  #carryOut(effect: Effect): void {
    if (effect.type === 'send') this.#toDevice.push(effect.frame)
    else if (effect.type === 'authenticate') {
      const lanes = this.#log.lanes(effect.epoch)
      this.#step({ type: 'authenticated', welcome: { session: 1, mayReadAllKeys: false, lanes } })
    } else if (effect.type === 'resolve') {
      const target = { partitionId: 0, promise: 'durable' as const, maxPayloadBytes: 1000 }
      this.#step({ type: 'resolved', alias: effect.alias, target })
    } else if (effect.type === 'append') this.#append(effect)
    else if (effect.type === 'record') this.#log.write(effect.ticket, effect.tag, null)
    else if (effect.type === 'close') this.#disconnect()
  }

  #append(effect: Extract<Effect, { type: 'append' }>): void {
    const { ticket, batch, tag } = effect
    const chance = this.#hasFaults ? this.#random.next() : 1
    if (chance < 0.15)
      this.#step({ type: 'append-refused', ticket, error: new EdgeError('EDGE_BACKPRESSURE', 'no room') })
    else if (chance < 0.2) {
      this.#step({ type: 'append-refused', ticket, error: new EdgeError('EDGE_MESSAGE_TOO_LARGE', 'too large') })
    } else if (tag !== null) {
      this.#log.write(ticket, tag, valuesOf(batch))
      this.#step({ type: 'appended', ticket, offset: 0n })
    }
  }

  #moment(): Moment {
    return { monotonicMs: this.#nowMs, wallUs: BigInt(this.#nowMs) * 1000n, isWallTrusted: false, accuracyMs: 0 }
  }
}

/** One file: what was written survives from the next sync on; a failed sync takes everything that waited. */
class SimulatedLog {
  readonly durable: Entry[] = []
  #unsynced: { readonly ticket: number; readonly entry: Entry }[] = []

  get hasUnsynced(): boolean {
    return this.#unsynced.length > 0
  }

  write(ticket: number, tag: SequenceTag, values: readonly number[] | null): void {
    this.#unsynced.push({ ticket, entry: { ...tag, values } })
  }

  sync(): { ticket: number; error: null }[] {
    const done = this.#unsynced.splice(0)
    this.durable.push(...done.map(({ entry }) => entry))
    return done.map(({ ticket }) => ({ ticket, error: null }))
  }

  failSync(): { ticket: number; error: EdgeError }[] {
    const error = new EdgeError('EDGE_APPEND_FAILED', 'sync failed')
    return this.#unsynced.splice(0).map(({ ticket }) => ({ ticket, error }))
  }

  crash(): void {
    this.#unsynced = []
  }

  lanes(epoch: number): ProducerLane[] {
    const ends = this.durable
      .filter((entry) => entry.epoch === epoch)
      .map((entry) => entry.firstSequence + entry.sequenceCount - 1)
    return ends.length === 0 ? [] : [{ lane: LANE, have: Math.max(...ends), durable: Math.max(...ends) }]
  }
}

/** Stored as sent: each payload is one CBOR integer. */
function valuesOf({ recordsView, count }: RecordBatch): number[] {
  const values: number[] = []
  let at = 0
  const varint = () => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = recordsView[at++] ?? 0
      value += (byte & 127) * 2 ** shift
      if (byte < 128) return value
    }
  }
  while (values.length < count) {
    const payloadSize = Math.floor(varint() / 4)
    varint() // origin time
    const headersSize = varint()
    values.push(unsigned(recordsView.subarray(at, at + payloadSize)))
    at += payloadSize + headersSize
  }
  return values
}

function unsigned(bytes: Uint8Array): number {
  const [first = 0, ...rest] = bytes
  return first < 24 ? first : rest.reduce((value, byte) => value * 256 + byte, 0)
}
