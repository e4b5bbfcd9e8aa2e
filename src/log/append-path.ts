/**
 * The way of a batch from a partition to the journal: refused, given up by a full topic, sent to a file of its own, or into
 * the open group. Everything here happens within the append's own call.
 */
import type { Clock } from '../clock.ts'
import { EdgeError } from '../errors.ts'
import { MAX_PAYLOAD_BYTES, MAX_USER_HEADERS_BYTES, type RecordBatch } from '../sdk/wire/batch.ts'
import type { ProducerTag, Receipt } from './api.ts'
import { MAX_TAG_SIZE } from './core/batch-header.ts'
import type { PendingBatch } from './core/pending-batch.ts'
import { PendingReceipt } from './core/pending-receipt.ts'
import type { Journal } from './io/journal.ts'
import type { LargeBatches } from './io/large-batches.ts'
import type { LogPartition } from './partition.ts'
import type { AppendGate } from './ports.ts'
import type { Producers } from './producers.ts'
import type { Scheduler } from './scheduler.ts'

/** The largest message that a protocol lets in, with its headers and the record's own numbers. */
export const MAX_BATCH_SIZE = MAX_PAYLOAD_BYTES + MAX_USER_HEADERS_BYTES + 64

const NO_RECORDS = new Uint8Array(0)

export interface AppendPathOptions {
  readonly journal: Journal
  readonly large: LargeBatches
  readonly producers: Producers
  readonly clock: Clock
  readonly scheduler: Scheduler
}

export class AppendPath {
  readonly #options: AppendPathOptions
  readonly counters = { appendedMessages: 0, appendedRecordBytes: 0, droppedMessages: 0 }
  gate: AppendGate | undefined
  /** The data folder is not there; undefined while it is. */
  displaced: EdgeError | undefined
  #isClosed = false

  constructor(options: AppendPathOptions) {
    this.#options = options
  }

  /** Nothing is taken any more. */
  close(): void {
    this.#isClosed = true
  }

  /** For what is above the limit there is never room: it waits as the largest does, and is then refused by name. */
  hasRoom(sizeBytes: number): boolean {
    const { journal, large } = this.#options
    if (this.displaced !== undefined) return false
    if (this.isLarge(sizeBytes))
      return journal.hasRoom(MAX_TAG_SIZE) && large.hasRoom(Math.min(sizeBytes, MAX_BATCH_SIZE))
    return journal.hasRoom(sizeBytes + MAX_TAG_SIZE)
  }

  /** Undefined while appends are taken; else why not. */
  get refusal(): EdgeError | undefined {
    return this.displaced ?? this.#options.journal.refusal
  }

  /** Whether that many bytes of records go into a file of their own. */
  isLarge(sizeBytes: number): boolean {
    return sizeBytes + MAX_TAG_SIZE > this.#options.journal.maxBodySize
  }

  /** @throws what an append would be refused with, before an offset is given. */
  check(partition: LogPartition, batch: RecordBatch, tag: ProducerTag | undefined): void {
    const { large } = this.#options
    if (this.#isClosed) throw new EdgeError('EDGE_SHUTTING_DOWN', 'the log is closing')
    const size = batch.recordsView.length
    const isLater = this.isLarge(size) || large.holds(partition, tag)
    if (this.refusal === undefined && (isLater ? large.hasRoom(size) : this.hasRoom(size))) return
    if (this.refusal !== undefined) throw this.refusal
    if (size > MAX_BATCH_SIZE) {
      const text = `a batch of ${size} bytes is above the limit of ${MAX_BATCH_SIZE}`
      throw new EdgeError('EDGE_MESSAGE_TOO_LARGE', text, { details: { sizeBytes: size, limit: MAX_BATCH_SIZE } })
    }
    throw new EdgeError('EDGE_BACKPRESSURE', 'the journal has no room for more: it waits for the disk')
  }

  /**
   * A full topic that drops the newest counts and gives up the batch, and its sender goes on.
   *
   * @returns whether it did.
   * @throws EDGE_TOPIC_FULL where the topic refuses instead.
   */
  dropsNewest(partition: LogPartition, batch: RecordBatch, receipt: Receipt, tag: ProducerTag | undefined): boolean {
    const refusal = this.gate?.refusal(partition.key) ?? null
    if (refusal === null) return false
    if (refusal === 'reject') {
      throw new EdgeError('EDGE_TOPIC_FULL', `topic ${partition.topicId} is full and drops nothing`)
    }
    // First what may be refused: what is counted as dropped must not be sent again.
    if (tag === undefined) this.#settleNext(partition, receipt)
    else this.recordSequence(tag, receipt, partition)
    this.gate?.droppedNewest(partition.key, partition.nextOffset, batch.count, batch.recordsView.length)
    this.counters.droppedMessages += batch.count
    return true
  }

  submit(batch: PendingBatch, partition: LogPartition, recordsView: Uint8Array, tag: ProducerTag | undefined): void {
    const { journal, large } = this.#options
    if (this.isLarge(recordsView.length) || large.holds(partition, tag)) {
      large.append(partition, batch, recordsView, tag)
      return
    }
    this.entered(batch.fields.count, recordsView.length)
    journal.append(batch, partition.watermark.isBuffered, recordsView, tag)
  }

  /** Counts what reaches the journal. */
  entered(messageCount: number, recordsSize: number): void {
    this.counters.appendedMessages += messageCount
    this.counters.appendedRecordBytes += recordsSize
  }

  /**
   * Disposes of sequence numbers without a record.
   *
   * @param partition behind whose receipts it is told, if any.
   * @throws EDGE_BACKPRESSURE, EDGE_APPEND_FAILED.
   */
  recordSequence(tag: ProducerTag, receipt: Receipt, partition?: LogPartition): void {
    const { journal, large, producers, clock } = this.#options
    if (this.#isClosed) throw new EdgeError('EDGE_SHUTTING_DOWN', 'the log is closing')
    const isLater = large.holds(undefined, tag)
    if (this.refusal !== undefined) throw this.refusal
    if (!journal.hasRoom(MAX_TAG_SIZE) || (isLater && !large.hasRoom(0))) {
      throw new EdgeError('EDGE_BACKPRESSURE', 'the journal has no room for more')
    }
    const batch = producers.sequenceBatch(tag, receipt, clock.wallUs())
    partition?.inOrder(batch)
    if (isLater) large.append(undefined, batch, NO_RECORDS, tag)
    else journal.append(batch, false, NO_RECORDS, tag)
  }

  /** In a later turn, and behind the earlier receipts of the partition. */
  #settleNext(partition: LogPartition, receipt: Receipt): void {
    const pending = new PendingReceipt(receipt)
    partition.inOrder(pending)
    this.#options.scheduler.nextTurn(() => pending.settle(null))
  }
}
