/**
 * The kernels in WebAssembly, over one memory of fixed size (growing would detach every view of it):
 *
 *   0        secret and result cells, module data
 *   64 KiB   input: where sources are copied to that do not lie in the memory
 *   + 2 MiB  output: what `scratch` hands out, and where results are made for targets that do not lie in the memory
 *   + 2 MiB  checksums of the frames of one VSR batch
 *   + 1 MiB  what `reserve` hands out for good
 *
 * Only pages that are touched count as memory of the process. Batches that do not fit go to the plain kernel.
 */
import { FLAG } from './faults.ts'
import { FRAME_HEADER_BYTES, HASHED_PREFIX_BYTES, JsKernel } from './js-kernel.ts'
import type { FrameBatchHead, Kernel, RecordSlice } from './kernel.ts'
import { KERNEL_WASM_BASE64 } from './kernel-wasm.ts'
import { xxh3Secret } from './xxh3.ts'

const KIB = 1024
const PAGE_BYTES = 64 * KIB
const SECRET_AT = 64
const FAULT_CELL = 256
const LEAST_CELL = 264
const MOST_CELL = 272

const INPUT_AT = PAGE_BYTES
const INPUT_BYTES = 2048 * KIB
const OUTPUT_AT = INPUT_AT + INPUT_BYTES
const OUTPUT_BYTES = 2048 * KIB
const SUMS_AT = OUTPUT_AT + OUTPUT_BYTES
const SUMS_BYTES = 1024 * KIB
const RESERVE_AT = SUMS_AT + SUMS_BYTES
const RESERVE_BYTES = 8192 * KIB
const MEMORY_PAGES = (RESERVE_AT + RESERVE_BYTES) / PAGE_BYTES

interface KernelExports {
  xxh3(at: number, length: number): bigint
  packClassic(at: number, length: number, count: number, target: number, flags: number): number
  packFrames(
    at: number,
    length: number,
    count: number,
    firstDelta: number,
    target: number,
    sums: number,
    flags: number,
  ): number
  scan(at: number, end: number, count: number, baseOrigin: bigint): number
  measure(at: number, end: number, skip: number, take: number): number
  unpackClassic(
    at: number,
    end: number,
    skip: number,
    take: number,
    target: number,
    targetEnd: number,
    baseOffset: bigint,
    timeUs: bigint,
    baseOrigin: bigint,
    idSeed: bigint,
    flags: number,
  ): number
  unpackFrames(
    at: number,
    end: number,
    skip: number,
    take: number,
    target: number,
    targetEnd: number,
    sums: number,
    partitionId: bigint,
    baseOffset: bigint,
    stampedOffset: bigint,
    timeUs: bigint,
    baseOrigin: bigint,
    batchOrigin: bigint,
    idSeed: bigint,
    flags: number,
  ): number
}

export class WasmKernel implements Kernel {
  readonly kind = 'wasm'
  faultIndex = 0
  leastOriginUs = 0n
  mostOriginUs = 0n
  readonly #memory: Uint8Array
  readonly #view: DataView
  readonly #output: Uint8Array
  readonly #exports: KernelExports
  readonly #plain = new JsKernel()
  #reserved = 0

  /** @throws what WebAssembly throws where it is missing or forbidden: see `sharedKernel`. */
  constructor() {
    const memory = new WebAssembly.Memory({ initial: MEMORY_PAGES, maximum: MEMORY_PAGES })
    const module = new WebAssembly.Module(Uint8Array.fromBase64(KERNEL_WASM_BASE64))
    const instance = new WebAssembly.Instance(module, { env: { memory } })
    this.#memory = new Uint8Array(memory.buffer)
    this.#view = new DataView(memory.buffer)
    this.#output = this.#memory.subarray(OUTPUT_AT, OUTPUT_AT + OUTPUT_BYTES)
    this.#memory.set(xxh3Secret(), SECRET_AT)
    // The names and signatures are those that kernel.as exports; the build check holds them together.
    this.#exports = instance.exports as unknown as KernelExports
  }

  reserve(sizeBytes: number): Uint8Array {
    const aligned = (sizeBytes + 63) & ~63
    if (aligned > RESERVE_BYTES - this.#reserved) return new Uint8Array(sizeBytes)
    const at = RESERVE_AT + this.#reserved
    this.#reserved += aligned
    return this.#memory.subarray(at, at + sizeBytes)
  }

  scratch(sizeBytes: number): Uint8Array {
    if (sizeBytes > OUTPUT_BYTES) return this.#plain.scratch(sizeBytes)
    return this.#output
  }

  xxh3(view: Uint8Array): bigint {
    const at = this.#place(view, true)
    return at < 0 ? this.#plain.xxh3(view) : BigInt.asUintN(64, this.#exports.xxh3(at, view.length))
  }

  packClassic(source: Uint8Array, count: number, target: Uint8Array, flags: number): number {
    const at = this.#place(source, false)
    const to = this.#targetOf(target)
    if (at < 0 || to < 0) return this.#plainResult(this.#plain.packClassic(source, count, target, flags))
    return this.#result(this.#exports.packClassic(at, source.length, count, to, flags), to, target)
  }

  packFrames(source: Uint8Array, count: number, firstDelta: number, target: Uint8Array, flags: number): number {
    // More frames than fit end as `short`; the sums must have room for as many as there can be until then.
    const most = Math.min(count, Math.ceil(source.length / FRAME_HEADER_BYTES))
    const at = this.#place(source, false)
    const to = this.#targetOf(target)
    if (at < 0 || to < 0 || !hasSumsRoom(most)) {
      return this.#plainResult(this.#plain.packFrames(source, count, firstDelta, target, flags))
    }
    return this.#result(this.#exports.packFrames(at, source.length, count, firstDelta, to, SUMS_AT, flags), to, target)
  }

  scan(source: Uint8Array, count: number, baseOriginUs: bigint): number {
    const at = this.#place(source, true)
    if (at < 0) {
      const fault = this.#plain.scan(source, count, baseOriginUs)
      this.leastOriginUs = this.#plain.leastOriginUs
      this.mostOriginUs = this.#plain.mostOriginUs
      return this.#plainResult(fault)
    }
    const fault = this.#exports.scan(at, at + source.length, count, baseOriginUs)
    if (fault < 0) return this.#fault(fault)
    this.leastOriginUs = this.#view.getBigUint64(LEAST_CELL, true)
    this.mostOriginUs = this.#view.getBigUint64(MOST_CELL, true)
    return 0
  }

  measure(source: Uint8Array, skip: number, take: number): number {
    const at = this.#place(source, true)
    if (at < 0) return this.#plainResult(this.#plain.measure(source, skip, take))
    const size = this.#exports.measure(at, at + source.length, skip, take)
    return size < 0 ? this.#fault(size) : size
  }

  unpackClassic(slice: RecordSlice, target: Uint8Array, flags: number): number {
    const { recordsView, skip, take } = slice
    const at = this.#place(recordsView, false)
    const to = this.#targetOf(target)
    if (at < 0 || to < 0) return this.#plainResult(this.#plain.unpackClassic(slice, target, flags))
    const size = this.#exports.unpackClassic(
      at,
      at + recordsView.length,
      skip,
      take,
      to,
      to + target.length,
      slice.baseOffset,
      slice.appendTimeUs,
      slice.baseOriginUs,
      slice.idSeed,
      flags,
    )
    return this.#result(size, to, target)
  }

  unpackFrames(slice: RecordSlice, head: FrameBatchHead, target: Uint8Array, flags: number): number {
    const { recordsView, skip, take } = slice
    const at = this.#place(recordsView, false)
    const to = this.#targetOf(target)
    if (at < 0 || to < 0 || !hasSumsRoom(take)) {
      return this.#plainResult(this.#plain.unpackFrames(slice, head, target, flags))
    }
    const size = this.#exports.unpackFrames(
      at,
      at + recordsView.length,
      skip,
      take,
      to,
      to + target.length,
      SUMS_AT,
      BigInt(head.partitionId),
      slice.baseOffset,
      head.baseOffset,
      head.appendTimeUs,
      slice.baseOriginUs,
      head.originUs,
      slice.idSeed,
      flags & FLAG.deriveIds,
    )
    return this.#result(size, to, target)
  }

  /** Where `view` lies in the memory, after a copy if need be; -1 when it does not fit. */
  #place(view: Uint8Array, isOutputKept: boolean): number {
    if (view.buffer === this.#memory.buffer) {
      const isInOutput = view.byteOffset >= OUTPUT_AT && view.byteOffset < OUTPUT_AT + OUTPUT_BYTES
      if (!isInOutput || isOutputKept) return view.byteOffset
    }
    if (view.length > INPUT_BYTES) return -1
    this.#memory.set(view, INPUT_AT)
    return INPUT_AT
  }

  /** Where the result is made: in the target itself, or in the output region if it fits there; else -1. */
  #targetOf(target: Uint8Array): number {
    if (target.buffer === this.#memory.buffer) return target.byteOffset
    return target.length <= OUTPUT_BYTES ? OUTPUT_AT : -1
  }

  #result(size: number, at: number, target: Uint8Array): number {
    if (size < 0) return this.#fault(size)
    if (target.buffer !== this.#memory.buffer) target.set(this.#memory.subarray(at, at + size))
    return size
  }

  #fault(fault: number): number {
    this.faultIndex = this.#view.getUint32(FAULT_CELL, true)
    return fault
  }

  #plainResult(size: number): number {
    this.faultIndex = this.#plain.faultIndex
    return size
  }
}

function hasSumsRoom(count: number): boolean {
  return HASHED_PREFIX_BYTES + count * 8 <= SUMS_BYTES
}
