/** The two kernels give the same bytes and the same faults, wherever sources and targets lie. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { buildKernelModule } from '../../../../scripts/build-kernel.ts'
import type { StoredBatch } from '../../../../src/sdk/wire/batch.ts'
import { FAULT, FLAG } from '../../../../src/sdk/wire/kernel/faults.ts'
import { JsKernel } from '../../../../src/sdk/wire/kernel/js-kernel.ts'
import type { FrameBatchHead, Kernel } from '../../../../src/sdk/wire/kernel/kernel.ts'
import { sharedKernel } from '../../../../src/sdk/wire/kernel/shared-kernel.ts'
import { WasmKernel } from '../../../../src/sdk/wire/kernel/wasm-kernel.ts'
import { encodeRecords } from '../../../../src/sdk/wire/messages.ts'
import { type Clock, randomMessages, storedBatch } from './support/batches.ts'
import { type SeededRandom, seededRandom } from './support/random.ts'

const js = new JsKernel()
const wasm = new WasmKernel()
const wasmRoom = wasm.reserve(1024 * 1024)
const POLL_FLAGS = FLAG.withChecksum | FLAG.stamp | FLAG.deriveIds
const CLOCKS: readonly Clock[] = ['steady', 'jumping', 'wild']

/** What a call gave: its bytes, or the fault and where. */
function outcome(kernel: Kernel, size: number, target: Uint8Array): Uint8Array | string {
  return size < 0 ? `fault ${size} at ${kernel.faultIndex}` : target.slice(0, size)
}

/** Runs one call on both kernels, on WASM also with source and target in its memory; all must agree. */
function onBoth(
  source: Uint8Array,
  targetBytes: number,
  call: (kernel: Kernel, source: Uint8Array, target: Uint8Array) => number,
): Uint8Array | string {
  const plainTarget = new Uint8Array(targetBytes)
  const expected = outcome(js, call(js, source, plainTarget), plainTarget)
  const copiedTarget = new Uint8Array(targetBytes)
  assert.deepEqual(outcome(wasm, call(wasm, source, copiedTarget), copiedTarget), expected)
  const residentSource = wasmRoom.subarray(3, 3 + source.length)
  residentSource.set(source)
  const residentTarget = wasmRoom.subarray(512 * 1024, 512 * 1024 + targetBytes)
  assert.deepEqual(outcome(wasm, call(wasm, residentSource, residentTarget), residentTarget), expected)
  return expected
}

function classicBytes(batch: StoredBatch, flags: number): Uint8Array {
  const bound = batch.recordsView.length + batch.take * 64
  const result = onBoth(batch.recordsView, bound, (kernel, recordsView, target) =>
    kernel.unpackClassic({ ...batch, recordsView }, target, flags),
  )
  assert.ok(typeof result !== 'string', String(result))
  return result
}

function frameBytes(batch: StoredBatch, head: Partial<FrameBatchHead> = {}): Uint8Array | string {
  const bound = 256 + batch.recordsView.length + batch.take * 48
  js.scan(batch.recordsView, batch.count, batch.baseOriginUs)
  const full = { partitionId: 7, baseOffset: batch.baseOffset, appendTimeUs: 9n, originUs: js.leastOriginUs, ...head }
  return onBoth(batch.recordsView, bound, (kernel, recordsView, target) =>
    kernel.unpackFrames({ ...batch, recordsView }, full, target, FLAG.deriveIds),
  )
}

test('the committed WebAssembly is what the source compiles to', async () => {
  const committed = await readFile(new URL('../../../../src/sdk/wire/kernel/kernel-wasm.ts', import.meta.url), 'utf8')
  assert.equal(committed, await buildKernelModule())
})

test('records become classic messages and the same records again, byte for byte in both kernels', () => {
  const random = seededRandom(11)
  for (let round = 0; round < 150; round++) {
    const batch = storedBatch(randomMessages(random, 1 + random.below(30), CLOCKS[round % 3] ?? 'steady'))
    const messages = classicBytes(batch, FLAG.withChecksum)
    const packed = onBoth(messages, messages.length, (kernel, source, target) =>
      kernel.packClassic(source, batch.count, target, FLAG.verify),
    )
    assert.deepEqual(packed, batch.recordsView.slice())
  }
})

test('records become VSR frames and the same records again, byte for byte in both kernels', () => {
  const random = seededRandom(12)
  for (let round = 0; round < 150; round++) {
    const messages = randomMessages(random, 1 + random.below(30), 'steady')
    const batch = storedBatch(messages.map((message) => ({ ...message, id: 1n + random.u64() })))
    const frames = frameBytes(batch)
    assert.ok(typeof frames !== 'string', String(frames))
    const packed = onBoth(frames, frames.length, (kernel, source, target) =>
      kernel.packFrames(source, batch.count, 0, target, 0),
    )
    assert.deepEqual(packed, batch.recordsView.slice())
  }
})

test('slices are the messages they are in the whole batch', () => {
  const random = seededRandom(13)
  const batch = storedBatch(randomMessages(random, 20, 'steady'))
  const whole = classicBytes(batch, POLL_FLAGS)
  let joined = new Uint8Array(0)
  for (let skip = 0; skip < 20; skip += 5) {
    joined = Uint8Array.from([...joined, ...classicBytes({ ...batch, skip, take: 5 }, POLL_FLAGS)])
  }
  assert.deepEqual(joined, whole)
  const frames = frameBytes({ ...batch, skip: 5, take: 3 })
  assert.ok(typeof frames !== 'string')
  const back = onBoth(frames, frames.length, (kernel, source, target) => kernel.packFrames(source, 3, 5, target, 0))
  assert.ok(typeof back !== 'string', String(back))
})

test('scan finds smallest and largest origin, and records that do not fill their batch', () => {
  const random = seededRandom(14)
  for (const clock of CLOCKS) {
    const messages = randomMessages(random, 25, clock)
    const batch = encodeRecords(messages)
    const origins = messages.map((message) => message.originUs).toSorted((a, b) => (a < b ? -1 : 1))
    for (const kernel of [js, wasm]) {
      assert.equal(kernel.scan(batch.recordsView, batch.count, batch.baseOriginUs), 0)
      assert.equal(kernel.leastOriginUs, origins[0])
      assert.equal(kernel.mostOriginUs, origins.at(-1))
      assert.equal(kernel.scan(batch.recordsView, batch.count - 1, batch.baseOriginUs), FAULT.record)
      assert.equal(kernel.scan(batch.recordsView, batch.count + 1, batch.baseOriginUs), FAULT.record)
      assert.equal(kernel.scan(batch.recordsView.subarray(1), batch.count, batch.baseOriginUs), FAULT.record)
    }
  }
})

test('measure is what payloads and user headers take, of any slice, or the first record that does not fit', () => {
  const random = seededRandom(15)
  for (let round = 0; round < 50; round++) {
    const messages = randomMessages(random, 20, CLOCKS[round % 3] ?? 'steady')
    const { recordsView } = encodeRecords(messages)
    const skip = random.below(20)
    const take = random.below(21 - skip)
    const expected = messages
      .slice(skip, skip + take)
      .reduce((sum, { payload, userHeaders }) => sum + payload.length + (userHeaders?.length ?? 0), 0)
    for (const kernel of [js, wasm]) {
      assert.equal(kernel.measure(recordsView, skip, take), expected)
      assert.equal(kernel.measure(recordsView, skip, 21 - skip), FAULT.record)
      assert.equal(kernel.faultIndex, 20)
    }
  }
})

test('an origin time out of reach of the batch is a fault, not a wrapped delta', () => {
  const at = 1_700_000_000_000_000n
  const payload = new Uint8Array(1)
  const batch = storedBatch([
    { payload, originUs: at },
    { payload, originUs: at + 0xffff_ffffn },
  ])
  assert.ok(typeof frameBytes(batch) !== 'string')
  const later = storedBatch([
    { payload, originUs: at },
    { payload, originUs: at + 0x1_0000_0000n },
  ])
  assert.equal(frameBytes(later), `fault ${FAULT.delta} at 1`)
  assert.equal(frameBytes(later, { originUs: at + 1n }), `fault ${FAULT.delta} at 0`)
})

test('too little room is a fault before a byte beyond it is written', () => {
  const batch = storedBatch(randomMessages(seededRandom(15), 4, 'steady'))
  const whole = classicBytes(batch, POLL_FLAGS)
  const frames = frameBytes(batch)
  assert.ok(typeof frames !== 'string')
  for (const kernel of [js, wasm]) {
    for (const short of [0, 63, whole.length - 1]) {
      assert.equal(kernel.unpackClassic(batch, new Uint8Array(short), POLL_FLAGS), FAULT.noRoom)
    }
    const room = wasmRoom.subarray(0, whole.length).fill(0xee)
    assert.equal(kernel.unpackClassic(batch, room.subarray(0, whole.length - 1), POLL_FLAGS), FAULT.noRoom)
    assert.equal(room.at(-1), 0xee)
  }
})

test('damaged messages, frames and records give the same fault in both kernels', () => {
  const random = seededRandom(16)
  for (let round = 0; round < 1500; round++) {
    const messages = randomMessages(random, 1 + random.below(5), 'steady')
    const batch = storedBatch(messages)
    const clean = classicBytes(batch, POLL_FLAGS)
    const messagesBytes = damaged(random, clean)
    onBoth(messagesBytes, messagesBytes.length + 64, (kernel, source, target) =>
      kernel.packClassic(source, batch.count, target, FLAG.verify),
    )
    const frames = frameBytes(batch)
    assert.ok(typeof frames !== 'string')
    const framesBytes = damaged(random, frames)
    if (framesBytes.length >= 256) {
      onBoth(framesBytes, framesBytes.length, (kernel, source, target) =>
        kernel.packFrames(source, batch.count, 0, target, 0),
      )
    }
    const recordsView = damaged(random, batch.recordsView)
    const bound = recordsView.length + batch.take * 64
    onBoth(recordsView, bound, (kernel, source, target) =>
      kernel.unpackClassic({ ...batch, recordsView: source }, target, POLL_FLAGS),
    )
  }
})

test('varints of ten bytes and more never read as something else in one kernel', () => {
  for (const tail of [0, 1, 2, 127]) {
    const records = Uint8Array.from([...Array(9).fill(0x80), tail, 0, 5, 5])
    const wide = Uint8Array.from([4, ...Array(9).fill(0xff), tail, 7])
    for (const source of [records, wide]) {
      onBoth(source, 4096, (kernel, view, target) =>
        kernel.unpackClassic(
          { ...storedBatch([{ payload: new Uint8Array(1), originUs: 5n }]), recordsView: view },
          target,
          0,
        ),
      )
    }
  }
})

test('batches larger than the kernel memory take the plain way, with the same bytes', () => {
  const payload = new Uint8Array(3 * 1024 * 1024).fill(7)
  const batch = storedBatch([
    { payload, originUs: 1n },
    { payload, originUs: 2n, id: 9n },
  ])
  const bound = batch.recordsView.length + 128
  const expected = new Uint8Array(bound)
  const found = new Uint8Array(bound)
  const size = js.unpackClassic(batch, expected, POLL_FLAGS)
  assert.equal(wasm.unpackClassic(batch, found, POLL_FLAGS), size)
  assert.ok(Buffer.from(found.buffer).equals(Buffer.from(expected.buffer)))
  assert.equal(
    wasm.packClassic(found.subarray(0, size), 2, wasm.scratch(size), FLAG.verify),
    js.packClassic(expected.subarray(0, size), 2, js.scratch(size), FLAG.verify),
  )
})

test('reserve hands out separate regions of the memory, and own buffers when it is used up', () => {
  const kernel = new WasmKernel()
  const first = kernel.reserve(1000)
  const second = kernel.reserve(1000)
  assert.equal(first.buffer, second.buffer)
  assert.ok(second.byteOffset >= first.byteOffset + 1000)
  assert.notEqual(kernel.reserve(64 * 1024 * 1024).buffer, first.buffer)
})

test('where WebAssembly is missing the plain kernel serves', async () => {
  const missing = 'WebAssembly'
  const descriptor = Object.getOwnPropertyDescriptor(globalThis, missing)
  assert.ok(descriptor)
  // A query makes it a module of its own: the shared one of this process is made already.
  const fresh = new URL('../../../../src/sdk/wire/kernel/shared-kernel.ts?plain', import.meta.url)
  Reflect.deleteProperty(globalThis, missing)
  try {
    const module: { sharedKernel(): Kernel } = await import(fresh.href)
    assert.equal(module.sharedKernel().kind, 'js')
    assert.equal(module.sharedKernel(), module.sharedKernel())
  } finally {
    Object.defineProperty(globalThis, missing, descriptor)
  }
  assert.equal(sharedKernel().kind, 'wasm')
})

/** One byte changed, cut off, or one inserted. */
function damaged(random: SeededRandom, bytes: Uint8Array): Uint8Array {
  const at = random.below(bytes.length)
  switch (random.below(3)) {
    case 0:
      return bytes.slice(0, at)
    case 1:
      return Uint8Array.from([...bytes.subarray(0, at), random.below(256), ...bytes.subarray(at)])
    default: {
      const changed = bytes.slice()
      changed[at] = random.below(256)
      return changed
    }
  }
}
