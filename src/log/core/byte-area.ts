/** A byte array with its view, made once per buffer: a view per field or record would be garbage. */
export interface ByteArea {
  readonly bytes: Uint8Array
  readonly view: DataView
}

export function areaOf(bytes: Uint8Array): ByteArea {
  return { bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength) }
}

export const createArea = (size: number): ByteArea => areaOf(new Uint8Array(size))

const U32_RANGE = 0x1_0000_0000

/** Reads a u64 that never exceeds 2^53 (sequences, generations, run numbers); above it the value is not exact. */
export function getSafeU64(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * U32_RANGE
}

export function setSafeU64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value % U32_RANGE, true)
  view.setUint32(at + 4, Math.floor(value / U32_RANGE), true)
}

/** `step` is a power of two. */
export const alignUp = (position: number, step: number): number => Math.ceil(position / step) * step
