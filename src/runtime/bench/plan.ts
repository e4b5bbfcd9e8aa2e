/** What `bench` measures, within which bounds, and how much it may store. Pure. */
import { MIB } from '../../setting.ts'

export interface BenchOptions {
  /** Of each measurement. */
  readonly seconds: number
  readonly connections: number
  /** Payload of a message, bytes. */
  readonly payloadBytes: number
}

export const BENCH_DEFAULTS: BenchOptions = { seconds: 3, connections: 16, payloadBytes: 200 }
export const BENCH_BOUNDS = {
  seconds: { min: 1, max: 60 },
  connections: { min: 1, max: 256 },
  payloadBytes: { min: 1, max: MIB },
} as const

export type Promised = 'durable' | 'buffered'

export interface Scenario {
  /** For programs. */
  readonly name: string
  readonly title: string
  readonly kind: 'send' | 'poll'
  /** Of the topic; null: as the server is set, since it has no such choice or it does not matter. */
  readonly promise: Promised | null
  /** Messages a request. */
  readonly batch: number
}

/** Messages of a request: of sends in batches, of two sorts of polls. */
const BATCH = 100
const POLLS = [100, 1000] as const
/** Of large messages fewer, so that a request is no larger than the largest message. */
const REQUEST_MAX_BYTES = MIB
/** Of all connections together: more would fill the memory of a small gateway, and servers let it wait unread. */
export const IN_FLIGHT_MAX_BYTES = 64 * MIB

/** @param hasPromises whether a topic of this server can be given its own promise. */
export function planScenarios(options: BenchOptions, hasPromises: boolean): readonly Scenario[] {
  const batch = batchOf(options)
  const send = (name: string, title: string, count: number, promise: Promised): Scenario => ({
    name,
    title,
    kind: 'send',
    promise: hasPromises ? promise : null,
    batch: count,
  })
  const singles = hasPromises
    ? [
        send('durable_singles', 'durable, one by one', 1, 'durable'),
        send('buffered_singles', 'buffered, one by one', 1, 'buffered'),
      ]
    : [send('singles', 'one by one', 1, 'durable')]
  // Of the largest messages no two go into a batch: that was measured already.
  const batches =
    batch === 1 ? [] : [send('batches', `${hasPromises ? 'durable, ' : ''}batches of ${batch}`, batch, 'durable')]
  const polls = [...new Set(POLLS.map((count) => countWithin(count, options)))].map(
    (count): Scenario => ({
      name: `polls_${count}`,
      title: `polls of ${count}`,
      kind: 'poll',
      promise: null,
      batch: count,
    }),
  )
  return [...singles, ...batches, ...polls]
}

export const batchOf = (options: BenchOptions): number => countWithin(BATCH, options)

function countWithin(count: number, { connections, payloadBytes }: BenchOptions): number {
  const requestBytes = Math.min(REQUEST_MAX_BYTES, IN_FLIGHT_MAX_BYTES / connections)
  return Math.min(count, Math.max(1, Math.floor(requestBytes / payloadBytes)))
}

/** More partitions than this tell nothing new, and each of them is a folder. */
const MAX_PARTITIONS = 16

export const partitionsOf = (connections: number): number => Math.min(connections, MAX_PARTITIONS)

// ---- room ------------------------------------------------------------------------------------------------------------

/** Of what is free, one measurement stores so much: the journal holds it a second time, and others go on writing. */
const ROOM_SHARE = 8
/** No measurement stores more, however large the disk: flash wears out. */
const STORED_MAX_BYTES = 256 * MIB
/** With less a disk of some speed is not measured for a second. */
const STORED_MIN_BYTES = 16 * MIB
/** What a stored message takes beside its payload, at most. */
const MESSAGE_HEAD_BYTES = 64
/** What polls read: more than any cache on the way, and quickly made. */
const POLLED_MESSAGES = 20_000

export const ROOM_MIN_BYTES = STORED_MIN_BYTES * ROOM_SHARE

/** @returns bytes one measurement may store; null when there is too little room for any. */
export function storedLimitOf(roomBytes: number): number | null {
  const limitBytes = Math.min(STORED_MAX_BYTES, Math.floor(roomBytes / ROOM_SHARE))
  return limitBytes < STORED_MIN_BYTES ? null : limitBytes
}

/** @returns how many requests of `batch` messages keep within `limitBytes`; at least one. */
export function requestsWithin(limitBytes: number, batch: number, payloadBytes: number): number {
  return Math.max(1, Math.floor(limitBytes / (batch * (payloadBytes + MESSAGE_HEAD_BYTES))))
}

/** @returns how many batches make enough to poll. */
export function polledBatches(limitBytes: number, options: BenchOptions): number {
  const batch = batchOf(options)
  return Math.min(Math.ceil(POLLED_MESSAGES / batch), requestsWithin(limitBytes, batch, options.payloadBytes))
}
