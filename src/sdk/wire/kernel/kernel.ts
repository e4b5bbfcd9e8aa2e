/** What a kernel does, whichever it is: message bytes in, message bytes out. Types only. */

/** Where records lie and which of them are meant; times in µs. */
export interface RecordSlice {
  readonly recordsView: Uint8Array
  readonly skip: number
  readonly take: number
  /** Offset of record 0; ids are derived from it. */
  readonly baseOffset: bigint
  readonly idSeed: bigint
  readonly appendTimeUs: bigint
  /** Origin time of record 0. */
  readonly baseOriginUs: bigint
}

/** What the header of a VSR batch says besides what follows from its frames. */
export interface FrameBatchHead {
  readonly partitionId: number
  /** 0 in sends. */
  readonly baseOffset: bigint
  readonly appendTimeUs: bigint
  /** No record of the slice lies before it, or 2^32 µs after it. */
  readonly originUs: bigint
}

/**
 * Sizes come back as numbers; a negative one is a `FAULT`, and `faultIndex` says of which message. Views whose buffer is
 * the kernel's own memory are worked on in place, others are copied in and out once.
 */
export interface Kernel {
  readonly kind: 'wasm' | 'js'
  /** Message index of the last fault. */
  readonly faultIndex: number
  /** Smallest and largest origin time of the last `scan`, µs. */
  readonly leastOriginUs: bigint
  readonly mostOriginUs: bigint

  /**
   * @returns `sizeBytes` of buffer that stays the caller's for ever, in the kernel's memory as long as that lasts: for
   * socket reads, file reads and replies that shall be worked on in place.
   */
  reserve(sizeBytes: number): Uint8Array
  /** @returns at least `sizeBytes` of buffer until the next call of any method but `xxh3` and `scan`. */
  scratch(sizeBytes: number): Uint8Array

  /** XXH3-64 with seed 0, exact for every length. */
  xxh3(view: Uint8Array): bigint
  /** Classic messages to records. `target` takes as many bytes as `source`. */
  packClassic(source: Uint8Array, count: number, target: Uint8Array, flags: number): number
  /** A whole VSR batch, header first, to records. `target` takes as many bytes as `source`. */
  packFrames(source: Uint8Array, count: number, firstDelta: number, target: Uint8Array, flags: number): number
  /** @returns 0 when `count` records fill `source` exactly, else a fault; sets least and most origin. */
  scan(source: Uint8Array, count: number, baseOriginUs: bigint): number
  /** @returns bytes of payload and user headers of records `skip` .. `skip + take`, or a fault. */
  measure(source: Uint8Array, skip: number, take: number): number
  /** Records to classic messages. */
  unpackClassic(slice: RecordSlice, target: Uint8Array, flags: number): number
  /** Records to one VSR batch. */
  unpackFrames(slice: RecordSlice, head: FrameBatchHead, target: Uint8Array, flags: number): number
}
