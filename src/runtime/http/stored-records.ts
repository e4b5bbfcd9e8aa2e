/**
 * Visits the messages of stored batches one by one: what HTTP answers and what the inspection page shows. The log keeps
 * compact records; Iggy's header fields, a derived id and the checksum among them, are made here as for a classic client.
 */
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import { FLAG, faultError } from '../../sdk/wire/kernel/faults.ts'
import { CLASSIC_HEADER_BYTES } from '../../sdk/wire/kernel/js-kernel.ts'
import { sharedKernel } from '../../sdk/wire/kernel/shared-kernel.ts'

/** Views are valid until the visit returns. */
export interface StoredMessage {
  readonly checksum: bigint
  readonly id: bigint
  readonly offset: bigint
  readonly timestampUs: bigint
  readonly originUs: bigint
  readonly payloadView: Uint8Array
  readonly headersView: Uint8Array
}

const FLAGS = FLAG.stamp | FLAG.deriveIds | FLAG.withChecksum

/** @throws {EdgeError} EDGE_BATCH_CORRUPT when the records are not what was stored. */
export function eachRecord(batch: StoredBatch, visit: (message: StoredMessage) => void): void {
  const kernel = sharedKernel()
  // A record grows by at most a classic header when it is unpacked.
  const target = kernel.scratch(batch.recordsView.length + batch.take * CLASSIC_HEADER_BYTES)
  const sizeBytes = kernel.unpackClassic(batch, target, FLAGS)
  if (sizeBytes < 0) throw faultError(sizeBytes, kernel.faultIndex, batch.take)
  const view = new DataView(target.buffer, target.byteOffset, sizeBytes)
  for (let at = 0; at < sizeBytes; ) {
    const headersSize = view.getUint32(at + 48, true)
    const payloadAt = at + CLASSIC_HEADER_BYTES
    const headersAt = payloadAt + view.getUint32(at + 52, true)
    visit({
      checksum: view.getBigUint64(at, true),
      id: (view.getBigUint64(at + 16, true) << 64n) | view.getBigUint64(at + 8, true),
      offset: view.getBigUint64(at + 24, true),
      timestampUs: view.getBigUint64(at + 32, true),
      originUs: view.getBigUint64(at + 40, true),
      payloadView: target.subarray(payloadAt, headersAt),
      headersView: target.subarray(headersAt, headersAt + headersSize),
    })
    at = headersAt + headersSize
  }
}
