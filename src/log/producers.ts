/** The producer table: pure numbers in `core/producer-table.ts`, their journal batches and their checkpoint in SQLite here. */
import { EdgeError } from '../errors.ts'
import type { ProducerLane, ProducerTag, Receipt } from './api.ts'
import { BATCH_FLAG, BATCH_HEADER_SIZE, BATCH_KIND, decodeTag } from './core/batch-header.ts'
import { type BatchOwner, PendingBatch } from './core/pending-batch.ts'
import { ProducerSequences } from './core/producer-table.ts'
import type { FoundBatch } from './io/journal-recovery.ts'
import type { ProducerStore } from './ports.ts'

/** Key of batches that belong to no partition: partitions begin at 1. */
const NO_PARTITION = 0

export class Producers {
  readonly #store: ProducerStore
  readonly #sequences: ProducerSequences

  constructor(store: ProducerStore, maxDevices: number) {
    this.#store = store
    this.#sequences = new ProducerSequences(maxDevices)
    for (const { device, name } of store.loadDevices()) this.#sequences.addDevice(device, name)
    for (const row of store.loadSequences()) this.#sequences.load(row)
  }

  numberOf(deviceName: string): number {
    const known = this.#sequences.device(deviceName)
    if (known !== undefined) return known
    const device = this.#sequences.newDevice(deviceName)
    this.#store.addDevice(device, deviceName)
    return device
  }

  have(device: number, epoch: number, lane: number): number | undefined {
    return this.#sequences.have(device, epoch, lane)
  }

  lanes(device: number, epoch: number): readonly ProducerLane[] {
    return this.#sequences.lanes(device, epoch)
  }

  devices(): readonly { readonly name: string; readonly lastSeenUs: bigint | null }[] {
    return this.#sequences.all()
  }

  forget(deviceName: string): number {
    const device = this.#sequences.device(deviceName)
    if (device === undefined)
      throw new EdgeError('EDGE_DEVICE_NOT_FOUND', `device ${JSON.stringify(deviceName)} is not remembered`)
    this.#store.removeDevice(device)
    this.#sequences.forget(deviceName)
    return device
  }

  settled(tag: ProducerTag, seenAtUs: bigint): void {
    this.#sequences.settled(tag, seenAtUs)
  }

  synced(tag: ProducerTag, seenAtUs: bigint): void {
    this.#sequences.synced(tag, seenAtUs)
  }

  sequenceBatch(tag: ProducerTag, receipt: Receipt, nowUs: bigint): PendingBatch {
    const fields = {
      count: 0,
      baseOffset: 0n,
      appendTimeUs: nowUs,
      baseOriginUs: 0n,
      key: NO_PARTITION,
      kind: BATCH_KIND.sequence,
      flags: BATCH_FLAG.hasTag,
    }
    return new PendingBatch(new SequenceOwner(this, tag), fields, 0n, receipt)
  }

  /** What a batch of the journal says; the checkpoint may be older. @returns its tag. */
  replay({ header, area, position }: FoundBatch, isProven: boolean): ProducerTag | undefined {
    const bodyAt = position + BATCH_HEADER_SIZE
    const tag = decodeTag(area.bytes, bodyAt, bodyAt + header.bodySize)?.tag
    if (tag === undefined) return undefined
    if (isProven) this.synced(tag, header.appendTimeUs)
    else this.settled(tag, header.appendTimeUs)
    return tag
  }

  /** Whom to tell when a sequence batch of the journal is written again. */
  ownerOf(tag: ProducerTag | undefined): BatchOwner {
    return new SequenceOwner(this, tag)
  }

  /** Writes what changed to SQLite, durable when it returns. @throws EDGE_IO, EDGE_DISK_FULL. */
  checkpoint(): void {
    const changes = this.#sequences.takeChanges()
    if (changes.changed.length === 0 && changes.removed.length === 0) return
    try {
      this.#store.saveSequences(changes.changed, changes.removed)
    } catch (error) {
      this.#sequences.putBack(changes)
      throw error
    }
    this.#sequences.stored(changes.changed)
  }
}

/** Settles like a durable append. */
class SequenceOwner implements BatchOwner {
  readonly #producers: Producers
  readonly #tag: ProducerTag | undefined

  constructor(producers: Producers, tag: ProducerTag | undefined) {
    this.#producers = producers
    this.#tag = tag
  }

  written(): boolean {
    return false
  }

  writtenBefore(): boolean {
    return false
  }

  keptInMemory(): void {}

  synced(batch: PendingBatch): void {
    if (this.#tag !== undefined) this.#producers.synced(this.#tag, batch.fields.appendTimeUs)
  }
}
