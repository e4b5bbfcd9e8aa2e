/** Bounds of the device protocol: what a peer may rely on before it has read others, and what is never exceeded. */

export const PROTOCOL_VERSION = 1

/** `welcome` names only what differs; the numbers are its keys. */
export const DEFAULT_LIMITS = {
  /** Whole frame, head included. */
  maxFrameBytes: 16_384,
  windowBytes: 65_536,
  windowReadings: 1024,
  idleTimeoutMs: 30_000,
  pingIntervalMs: 10_000,
  aliases: 32,
  subscriptions: 4,
  streams: 4,
  /** 0: none are taken. */
  maxDatagramBytes: 1100,
  readingsPerSecond: 1000,
  bytesPerSecond: 131_072,
  readingsPerFrame: 1024,
} as const

export type EdgeLimits = { readonly [K in keyof typeof DEFAULT_LIMITS]: number }

/** Lane 0 has a window of its own, which backlog cannot use up. */
export const ALARM_WINDOW = { bytes: 4096, readings: 64 } as const

/** Where `hello` names no largest frame that the device takes. */
export const DEVICE_MAX_FRAME_BYTES = 1024
/** What a device may send before it has read `welcome`. */
export const FIRST_FLIGHT_BYTES = 4096
/** `hello` is taken from somebody unknown. */
export const MAX_HELLO_BYTES = 1024
/** A head has at most three bytes, so no frame can be larger. */
export const MAX_FRAME_BYTES = 65_535
export const MIN_FRAME_BYTES = 256

/** The pre-check: deeper or longer frames are refused before they are decoded. */
export const MAX_DEPTH = 4
export const MAX_ITEMS = 4096

/** The number after it, which a refusal names, still fits into a frame. */
export const MAX_SEQUENCE = Number.MAX_SAFE_INTEGER - 1
export const LANES = { alarm: 0, live: 1, backlog: 2, bulk: 3 } as const
export const LANE_COUNT = 4
export const MAX_ALIAS = 63
export const MAX_SUBSCRIPTION = 15
export const MAX_FIELDS = 16
/** A late datagram is known by one bit for each of the newest this many numbers. */
export const DATAGRAM_MASK_BITS = 64
