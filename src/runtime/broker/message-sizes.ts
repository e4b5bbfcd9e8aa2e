/**
 * What the messages of a partition take in Iggy's own form: 64 bytes each, payload and user headers. That is what Iggy's
 * clients are shown as a size and reckon with; what we store is smaller, and shrinks once more when it is compressed.
 *
 * The log says what was appended since it was opened; sums of before are kept in its store when the edge stops, and now and
 * then. Where something is not known exactly (whole segments were dropped, the edge was killed) the sum follows the number of
 * messages: sizes of one partition are alike.
 */
import type { Log, Partition } from '../../log/index.ts'
import type { Logger } from '../../logger.ts'
import { storedValue } from '../stored-value.ts'

export const MESSAGE_HEAD_BYTES = 64
const SETTING = 'broker.message_sizes'

type Sized = Pick<
  Partition,
  'key' | 'logStartOffset' | 'nextOffset' | 'messageCount' | 'sizeBytes' | 'appendedContentBytes'
>

/** Payload and header bytes of the messages from `from` up to `end`: fewer than offsets, where some were left out. */
interface Content {
  readonly bytes: number
  readonly from: bigint
  readonly end: bigint
  readonly count: number
}

interface Known extends Content {
  /** Of the log's count, what is in `bytes` already. */
  readonly counted: number
}

export class MessageSizes {
  private readonly log: Pick<Log, 'catalog' | 'metadata'>
  private readonly known = new Map<number, Known>()
  private savedText: string

  /** Before anything is appended: what the log holds now is what was there when the sums were kept, or a little more. */
  constructor(log: Pick<Log, 'catalog' | 'metadata'>, logger: Logger) {
    this.log = log
    this.savedText = log.metadata.setting(SETTING) ?? '[]'
    const saved = storedValue(log.metadata, SETTING, parse, logger) ?? new Map<number, Content>()
    for (const partition of this.partitions()) {
      const bytes = adapted(saved.get(partition.key), partition)
      const { logStartOffset: from, nextOffset: end, messageCount: count, appendedContentBytes: counted } = partition
      this.known.set(partition.key, { bytes, from, end, count, counted })
    }
  }

  /** @returns bytes of the messages the partition holds. */
  of(partition: Sized): number {
    return partition.messageCount * MESSAGE_HEAD_BYTES + Math.round(this.follow(partition).bytes)
  }

  /** Keeps the sums over a restart; nothing is written when nothing has changed. */
  async save(): Promise<void> {
    const rows = [...this.partitions()].map((partition) => {
      const { bytes, from, end, count } = this.follow(partition)
      return [partition.key, Math.round(bytes), String(from), String(end), count]
    })
    const text = JSON.stringify(rows)
    if (text === this.savedText) return
    await this.log.metadata.setSetting(SETTING, text)
    this.savedText = text
    const keys = new Set(rows.map(([key]) => key))
    for (const key of this.known.keys()) if (!keys.has(key)) this.known.delete(key)
  }

  /** Takes in what was appended and dropped since the last time. */
  private follow(partition: Sized): Known {
    const { key, logStartOffset: from, nextOffset: end, messageCount: count, appendedContentBytes: counted } = partition
    const before = this.known.get(key) ?? { bytes: 0, from: 0n, end: 0n, count: 0, counted: 0 }
    const isSame = before.from === from && before.end === end && before.count === count
    if (isSame && before.counted === counted) return before
    const bytes = before.bytes + counted - before.counted
    const whole = { bytes, count: before.count + Number(end - before.end) }
    const known = { bytes: from === before.from ? bytes : shareOf(whole, count), from, end, count, counted }
    this.known.set(key, known)
    return known
  }

  private *partitions(): Generator<Partition> {
    for (const stream of this.log.catalog.streams.values())
      for (const topic of stream.topics.values()) yield* topic.partitions
  }
}

/** Of `count` messages that are like those of `content`. */
const shareOf = (content: Pick<Content, 'bytes' | 'count'>, count: number): number =>
  content.count > 0 ? (content.bytes / content.count) * count : 0

/** @returns what was kept, made to fit what the log holds now. */
function adapted(saved: Content | undefined, partition: Sized): number {
  const { messageCount, sizeBytes } = partition
  if (messageCount === 0) return 0
  return saved === undefined || saved.count <= 0 ? sizeBytes : shareOf(saved, messageCount)
}

function parse(text: string): ReadonlyMap<number, Content> {
  const rows = JSON.parse(text) as readonly (readonly [number, number, string, string, number?])[]
  return new Map(
    rows.map(([key, bytes, from, end, count = Number(BigInt(end) - BigInt(from))]) => {
      if (!Number.isSafeInteger(bytes)) throw new Error(`expected bytes of partition key ${key}, found ${bytes}`)
      if (!Number.isSafeInteger(count)) throw new Error(`expected messages of partition key ${key}, found ${count}`)
      return [key, { bytes, from: BigInt(from), end: BigInt(end), count }]
    }),
  )
}
