/** A batch on its way from the append to its promise: one small object, reused by nobody, kept until its group is synced. */

import type { Receipt } from '../api.ts'
import type { BatchHeader } from './batch-header.ts'
import { PendingReceipt } from './pending-receipt.ts'

/** Whose batch it is: told of each step, in the order of the appends. */
export interface BatchOwner {
  /** It lies in the page cache at that place. @returns whether its promise holds with that. Called again when moved. */
  written(batch: PendingBatch, fileNumber: number, position: number): boolean
  /** What was written may be gone: the batch waits at `batch.at` of the memory that is written again. */
  keptInMemory(batch: PendingBatch): void
  /** After a sync: whether the promise of a written batch that still waits holds now. */
  writtenBefore(batch: PendingBatch): boolean
  /** It is on stable storage: every promise holds. */
  synced(batch: PendingBatch): void
}

export type BatchFields = Omit<BatchHeader, 'bodyCrc' | 'bodySize' | 'index'>

export class PendingBatch extends PendingReceipt {
  readonly owner: BatchOwner
  readonly fields: BatchFields
  readonly endOffset: bigint
  /** Place and size in the buffer of its group. */
  at = 0
  size = 0

  constructor(owner: BatchOwner, fields: BatchFields, endOffset: bigint, receipt: Receipt | null) {
    super(receipt)
    this.owner = owner
    this.fields = fields
    this.endOffset = endOffset
  }
}
