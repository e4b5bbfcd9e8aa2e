/** What the device protocol asks of the broker: who a device is, where its readings go, what it may read. */
import type { Appended, Durability, ProducerLane, ProducerTag, Receipt } from '../../log/api.ts'
import type { RecordBatch } from '../../sdk/wire/batch.ts'
import type { Auth, PartitionChoice } from '../../sdk/wire/edge/index.ts'

export interface DeviceBroker {
  /**
   * Checks a credential for a name. Takes the same time whether or not the token exists.
   *
   * @throws EDGE_UNAUTHENTICATED (or another code of kind `auth`), EDGE_LIMIT_REACHED when no more devices are remembered.
   */
  authenticate(deviceName: string, auth: Auth): Promise<DeviceGrant>
  /** Sequences disposed of, for each lane of an epoch that is known. */
  lanes(device: number, epoch: number): readonly ProducerLane[]
  /** Disposes of sequences without a reading: refused for good, or given up by the device. Settles like a durable append. */
  record(tag: ProducerTag, receipt: Receipt): void
  time(): EdgeTime
}

/** What a credential allows, for one session. */
export interface DeviceGrant {
  /** Number of the device in the producer table. */
  readonly device: number
  /** May read messages meant for other devices. */
  readonly mayReadAllKeys: boolean
  /** @throws EDGE_FORBIDDEN, EDGE_TOPIC_NOT_FOUND and its like, EDGE_READING_INVALID for a partition that is not allowed. */
  publishTo(topicName: string, choice: PartitionChoice | undefined): DeviceTarget
  /** @throws EDGE_FORBIDDEN, EDGE_TOPIC_NOT_FOUND and its like. */
  readFrom(topicName: string, partitionId: number | undefined): DeviceSource
  /** Set by the session while it lasts, null again once it has ended: to be called when the credential is taken back. */
  onRevoked: (() => void) | null
}

/** One partition that readings of an alias go to. */
export interface DeviceTarget {
  readonly partitionId: number
  readonly promise: Durability
  readonly maxPayloadBytes: number
  /** @throws EDGE_BACKPRESSURE, EDGE_TOPIC_FULL, EDGE_MESSAGE_TOO_LARGE, EDGE_APPEND_FAILED and its like. */
  append(batch: RecordBatch, receipt: Receipt, tag: ProducerTag | undefined): Pick<Appended, 'baseOffset' | 'isDropped'>
}

/** One partition that a subscription reads. */
export interface DeviceSource {
  /** u32: another one for a partition that was made again under the same name, also by another edge. */
  readonly incarnation: number
  /** First offset kept, and the end (exclusive) of what may be seen now. */
  readonly startOffset: bigint
  readonly endOffset: bigint
  /** Last offset the device has acknowledged. */
  storedOffset(): bigint | undefined
  storeOffset(offset: bigint): void
  read(fromOffset: bigint, maxCount: number, maxBytes: number): DeviceRead | Promise<DeviceRead>
  /** @returns an unsubscribe function. */
  onAppended(callback: () => void): () => void
  /** Calls back when nothing comes any more: the topic's name is no longer that partition's. @returns an unsubscribe function. */
  onGone(callback: () => void): () => void
}

export interface DeviceRead {
  readonly messages: readonly DownMessage[]
  readonly nextOffset: bigint
  /** A range that could not be read and was left out. */
  readonly hole?: { readonly from: bigint; readonly end: bigint }
}

export interface DownMessage {
  readonly offset: bigint
  readonly appendTimeUs: bigint
  /** User header `key`: the device it is meant for; undefined means all. */
  readonly key: string | undefined
  readonly body: Uint8Array
}

/** The edge's wall clock and how far it may be off. */
export interface EdgeTime {
  readonly wallUs: bigint
  readonly isTrusted: boolean
  readonly accuracyMs: number
}
