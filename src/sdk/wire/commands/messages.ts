/** Sends, polls and flush (protocol section 7.5); the bodies of messages are in `../classic` and `../vsr`. */
import type { RecordBatch, StoredBatch } from '../batch.ts'
import { readPolledMessages, readSentMessages, writePolledMessages, writeSentMessages } from '../classic/message.ts'
import { bool, type Codec, list, nothing, struct, u32, u64 } from '../codec.ts'
import { CODE } from '../codes.ts'
import { sharedKernel } from '../kernel/shared-kernel.ts'
import {
  consumer,
  type Identifier,
  identifier,
  optionalPartition,
  type Partitioning,
  partitioning,
  pollingStrategy,
} from '../primitives.ts'
import { isStored } from '../record-slice.ts'
import { readPolledBatches, readSentBatch, writePolledBatches, writeSentBatch } from '../vsr/message.ts'
import { command } from './command.ts'

export interface SendMessagesRequest {
  readonly stream: Identifier
  readonly topic: Identifier
  readonly partitioning: Partitioning
  /**
   * Decoded: its records lie in the kernel's scratch, valid until the next message is decoded or encoded; an append copies
   * them. To encode: any batch; a stored one is sent with the ids derived from its offsets.
   */
  readonly batch: RecordBatch
}

export interface SendConfirmation {
  readonly streamId: number
  readonly topicId: number
  readonly partitionId: number
  readonly baseOffset: bigint
}

export interface SendMessagesResponse {
  /** One entry in VSR, or none when a duplicate was recognised. Empty in classic. */
  readonly confirmations: readonly SendConfirmation[]
}

/** `[metadata length:4]` stream topic partitioning `[count:4]`, then the messages of the dialect. */
const sendRequest: Codec<SendMessagesRequest> = {
  // Written out, not put together from codecs: the one request whose fixed costs count.
  read(reader, dialect) {
    reader.field = 'metadata'
    const metadata = reader.sub(reader.u32())
    const stream = identifier.read(metadata, dialect)
    const topic = identifier.read(metadata, dialect)
    const partition = partitioning.read(metadata, dialect)
    const count = metadata.u32()
    if (metadata.remaining > 0) {
      throw metadata.fail('EDGE_COMMAND_MALFORMED', 'the end of the metadata', `${metadata.remaining} bytes more`)
    }
    reader.field = 'messages'
    const read = dialect === 'classic' ? readSentMessages : readSentBatch
    return { stream, topic, partitioning: partition, batch: read(reader, count, sharedKernel()) }
  },
  write(writer, value, dialect) {
    const { batch } = value
    const at = writer.length
    writer.u32(0)
    const count = isStored(batch) ? batch.take : batch.count
    writer.field = 'stream'
    identifier.write(writer, value.stream, dialect)
    writer.field = 'topic'
    identifier.write(writer, value.topic, dialect)
    writer.field = 'partitioning'
    partitioning.write(writer, value.partitioning, dialect)
    writer.u32(count)
    writer.patchU32(at, writer.length - at - 4)
    if (dialect === 'classic') writeSentMessages(writer, batch, sharedKernel())
    else writeSentBatch(writer, batch, sharedKernel())
  },
}

const confirmations = list(u32, struct({ streamId: u32, topicId: u32, partitionId: u32, baseOffset: u64 }))

const sendResponse: Codec<SendMessagesResponse> = {
  read(reader, dialect) {
    // An empty body is a success without a confirmation: a recognised duplicate.
    if (reader.remaining === 0) return { confirmations: [] }
    return { confirmations: confirmations.read(reader, dialect) }
  },
  write(writer, value, dialect) {
    if (dialect === 'vsr') confirmations.write(writer, value.confirmations, dialect)
  },
}

export const sendMessages = command(CODE.sendMessages, sendRequest, sendResponse)

export const pollRequest = struct({
  consumer,
  stream: identifier,
  topic: identifier,
  partitionId: optionalPartition,
  strategy: pollingStrategy,
  count: u32,
  autoCommit: bool,
})

/** VSR: partition of an empty poll that says "not yours, sync the group". */
export const PARTITION_NOT_OWNED = 0xffff_ffff

export interface PollMessagesResponse {
  readonly partitionId: number
  /** Offset of the newest message; 0 for an empty partition. */
  readonly currentOffset: bigint
  /** Sum of `take` of the batches. */
  readonly messageCount: number
  readonly batches: readonly StoredBatch[]
}

export const pollHead = struct({ partitionId: u32, currentOffset: u64, messageCount: u32 })

/** `[partition:4][current offset:8][count:4]`, then the messages of the dialect. */
export const pollResponse: Codec<PollMessagesResponse> = {
  read(reader, dialect) {
    const head = pollHead.read(reader, dialect)
    reader.field = 'messages'
    const read = dialect === 'classic' ? readPolledMessages : readPolledBatches
    return { ...head, batches: read(reader, head.messageCount, sharedKernel()) }
  },
  write(writer, value, dialect) {
    pollHead.write(writer, value, dialect)
    if (dialect === 'classic') writePolledMessages(writer, value.batches, sharedKernel())
    else writePolledBatches(writer, value.partitionId, value.batches, sharedKernel())
  },
}

export const pollMessages = command(CODE.pollMessages, pollRequest, pollResponse)

export const flushUnsavedBuffer = command(
  CODE.flushUnsavedBuffer,
  struct({ stream: identifier, topic: identifier, partitionId: u32, isFsync: bool }),
  nothing,
)
