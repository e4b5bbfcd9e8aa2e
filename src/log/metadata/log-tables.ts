/** Tables that only the log itself reads: hints, the producer checkpoint, copies of the descriptors, drop totals. */
import type { HintStore, Jump, PartitionHint, ProducerSequence, ProducerStore, ReportFinding } from '../ports.ts'
import { type Connection, toInteger } from './connection.ts'
import { JOURNAL_FILES_SETTING, JUMPS_SETTING, OWED_OFFSETS_SETTING } from './schema.ts'

/** Hints spare a scan and may be lost: a failed write is told once and not thrown. Owed offsets and jumps must be kept. */
export class SqliteHints implements HintStore {
  readonly #connection: Connection
  readonly #report: ReportFinding
  readonly #get
  readonly #put
  readonly #delete
  readonly #getSetting
  readonly #putSetting
  #owed: ReadonlyMap<number, bigint> | undefined
  #jumps: ReadonlyMap<number, readonly Jump[]> | undefined
  #isFailing = false

  constructor(connection: Connection, report: ReportFinding) {
    this.#connection = connection
    this.#report = report
    this.#get = connection.bigStatement<[number], { next_offset: bigint; segment_end: bigint; message_count: bigint }>(
      'SELECT next_offset, segment_end, message_count FROM hints WHERE partition_key = ?',
    )
    this.#put = connection.statement(
      'INSERT OR REPLACE INTO hints (partition_key, next_offset, segment_end, message_count) VALUES (?, ?, ?, ?)',
    )
    this.#delete = connection.statement<[number]>('DELETE FROM hints WHERE partition_key = ?')
    this.#getSetting = connection.statement<[string], { value: string }>('SELECT value FROM settings WHERE name = ?')
    this.#putSetting = connection.statement('INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)')
  }

  hint(key: number): PartitionHint | undefined {
    const row = this.#get.get(key)
    if (row === undefined) return undefined
    return { nextOffset: row.next_offset, segmentEnd: row.segment_end, messageCount: Number(row.message_count) }
  }

  setHints(hints: ReadonlyMap<number, PartitionHint>): void {
    this.#write(() => {
      for (const [key, hint] of hints) {
        this.#put.run(key, toInteger(hint.nextOffset), toInteger(hint.segmentEnd), hint.messageCount)
      }
    })
  }

  journalFiles(): readonly number[] {
    return parseJournalFiles(this.#getSetting.get(JOURNAL_FILES_SETTING)?.value)
  }

  setJournalFiles(generations: readonly number[], isDurable: boolean): void {
    this.#write(() => void this.#putSetting.run(JOURNAL_FILES_SETTING, generations.join(',')), isDurable)
  }

  owedOffsets(): ReadonlyMap<number, bigint> {
    this.#owed ??= parseOwedOffsets(this.#getSetting.get(OWED_OFFSETS_SETTING)?.value)
    return this.#owed
  }

  keepOwedOffsets(owed: ReadonlyMap<number, bigint>): void {
    const text = [...owed].map(([key, offset]) => `${key}:${offset}`).join(',')
    this.#connection.durably(() => void this.#putSetting.run(OWED_OFFSETS_SETTING, text))
    this.#owed = owed
  }

  jumps(): ReadonlyMap<number, readonly Jump[]> {
    this.#jumps ??= parseJumps(this.#getSetting.get(JUMPS_SETTING)?.value)
    return this.#jumps
  }

  keepJumps(jumps: ReadonlyMap<number, readonly Jump[]>): void {
    const text = formatJumps(jumps)
    this.#connection.durably(() => void this.#putSetting.run(JUMPS_SETTING, text))
    this.#jumps = jumps
  }

  #write(work: () => void, isDurable = false): void {
    try {
      if (isDurable) this.#connection.durably(work)
      else this.#connection.softly(work)
      this.#isFailing = false
    } catch (error) {
      if (!this.#isFailing) {
        const text = `hints cannot be written, the next start scans more: ${String(error)}`
        this.#report({ event: 'log.metadata.hints_failed', level: 'warn', text, fields: {} })
      }
      this.#isFailing = true
    }
  }

  /** Call inside a transaction. */
  deleteRow(key: number): void {
    this.#delete.run(key)
  }
}

/** @returns none for what is no list of generations. */
export function parseJournalFiles(value: string | undefined): readonly number[] {
  const generations = (value ?? '').split(',').map(Number)
  return generations.every((generation) => Number.isSafeInteger(generation) && generation > 0) ? generations : []
}

/** @returns what of it can be read. */
export function parseOwedOffsets(value: string | undefined): ReadonlyMap<number, bigint> {
  const pairs = (value ?? '').matchAll(/(?:^|,)(\d{1,10}):(\d{1,19})(?=,|$)/g)
  return new Map([...pairs].map(([, key, offset]) => [Number(key), BigInt(offset ?? 0)]))
}

function formatJumps(jumps: ReadonlyMap<number, readonly Jump[]>): string {
  const texts = [...jumps].flatMap(([key, list]) =>
    list.map(({ from, end, missing = end - from }) => `${key}:${from}-${end}/${missing}`),
  )
  return texts.join(',')
}

/** @returns what of it can be read. */
export function parseJumps(value: string | undefined): ReadonlyMap<number, readonly Jump[]> {
  const rows = (value ?? '').matchAll(/(?:^|,)(\d{1,10}):(\d{1,19})-(\d{1,19})\/(\d{1,15})(?=,|$)/g)
  const jumps = new Map<number, Jump[]>()
  for (const [, keyText, fromText = '', endText = '', missingText] of rows) {
    const [key, from, end, missing] = [Number(keyText), BigInt(fromText), BigInt(endText), Number(missingText)]
    if (missing === 0 || BigInt(missing) > end - from) continue
    const list = jumps.get(key) ?? []
    list.push(BigInt(missing) === end - from ? { from, end } : { from, end, missing })
    jumps.set(key, list)
  }
  return jumps
}

export class SqliteProducers implements ProducerStore {
  readonly #connection: Connection
  readonly #addDevice
  readonly #removeDevice
  readonly #removeSequences
  readonly #put
  readonly #delete

  constructor(connection: Connection) {
    this.#connection = connection
    this.#addDevice = connection.statement('INSERT OR REPLACE INTO devices (device, name) VALUES (?, ?)')
    this.#removeDevice = connection.statement('DELETE FROM devices WHERE device = ?')
    this.#removeSequences = connection.statement('DELETE FROM sequences WHERE device = ?')
    this.#put = connection.statement(
      'INSERT OR REPLACE INTO sequences (device, epoch, lane, have, seen_at_us) VALUES (?, ?, ?, ?, ?)',
    )
    this.#delete = connection.statement('DELETE FROM sequences WHERE device = ? AND epoch = ? AND lane = ?')
  }

  loadDevices(): readonly { device: number; name: string }[] {
    return this.#connection
      .statement<[], { device: number; name: string }>('SELECT device, name FROM devices ORDER BY device')
      .all()
  }

  /** Durable when it returns: batches in the journal name the device by its number alone. */
  addDevice(device: number, name: string): void {
    this.#connection.durably(() => {
      this.#addDevice.run(device, name)
    })
  }

  removeDevice(device: number): void {
    this.#connection.durably(() => {
      this.#removeDevice.run(device)
      this.#removeSequences.run(device)
    })
  }

  loadSequences(): readonly ProducerSequence[] {
    const rows = this.#connection.bigStatement<
      [],
      { device: bigint; epoch: bigint; lane: bigint; have: bigint; seen_at_us: bigint }
    >('SELECT * FROM sequences')
    return rows.all().map((row) => ({
      device: Number(row.device),
      epoch: Number(row.epoch),
      lane: Number(row.lane),
      have: Number(row.have),
      seenAtUs: row.seen_at_us,
    }))
  }

  saveSequences(changed: readonly ProducerSequence[], removed: readonly ProducerSequence[]): void {
    this.#connection.durably(() => {
      for (const row of removed) this.#delete.run(row.device, row.epoch, row.lane)
      for (const row of changed) this.#put.run(row.device, row.epoch, row.lane, row.have, toInteger(row.seenAtUs))
    })
  }
}

/** Which descriptor a copy is of: a topic's, a stream's (`topicId` -1) or the store's (both -1). */
export interface DescriptorPlace {
  readonly streamId: number
  readonly topicId: number
}

export const NO_ID = -1

export interface DescriptorCopy extends DescriptorPlace {
  /** JSON as it stands in the file. */
  readonly body: string
}

/** The database's copy of all descriptors, from which a damaged file is restored. */
export class DescriptorCopies {
  readonly #connection: Connection
  readonly #put
  readonly #delete
  readonly #deleteStream

  constructor(connection: Connection) {
    this.#connection = connection
    this.#put = connection.statement('INSERT OR REPLACE INTO descriptors (stream_id, topic_id, body) VALUES (?, ?, ?)')
    this.#delete = connection.statement('DELETE FROM descriptors WHERE stream_id = ? AND topic_id = ?')
    this.#deleteStream = connection.statement('DELETE FROM descriptors WHERE stream_id = ?')
  }

  all(): readonly DescriptorCopy[] {
    return this.#connection
      .statement<[], DescriptorCopy>('SELECT stream_id AS streamId, topic_id AS topicId, body FROM descriptors')
      .all()
  }

  put(copies: readonly DescriptorCopy[]): void {
    this.#connection.softly(() => this.#putAll(copies))
  }

  /** The same, on stable storage when it returns. @throws EDGE_DISK_FULL, EDGE_IO. */
  putDurably(copies: readonly DescriptorCopy[]): void {
    this.#connection.durably(() => this.#putAll(copies))
  }

  #putAll(copies: readonly DescriptorCopy[]): void {
    for (const { streamId, topicId, body } of copies) this.#put.run(streamId, topicId, body)
  }

  /** Call inside a transaction. */
  deleteRow(place: DescriptorPlace): void {
    if (place.topicId === NO_ID) this.#deleteStream.run(place.streamId)
    else this.#delete.run(place.streamId, place.topicId)
  }
}

/** Messages given up, summed by partition and reason. */
export interface DropTotal {
  readonly partitionKey: number
  readonly reason: string
  readonly messageCount: number
  readonly sizeBytes: number
  /** Lowest and highest offset ever dropped for that reason, end exclusive. */
  readonly fromOffset: bigint
  readonly endOffset: bigint
}

interface SqlDrop {
  partition_key: bigint
  reason: string
  message_count: bigint
  size_bytes: bigint
  from_offset: bigint
  end_offset: bigint
}

/** Survives restarts, so that the books balance over the life of the store. */
export class DropTotals {
  readonly #connection: Connection
  readonly #put
  readonly #delete

  constructor(connection: Connection) {
    this.#connection = connection
    this.#put = connection.statement(
      `INSERT OR REPLACE INTO drops (partition_key, reason, message_count, size_bytes, from_offset, end_offset)
       VALUES (?, ?, ?, ?, ?, ?)`,
    )
    this.#delete = connection.statement('DELETE FROM drops WHERE partition_key = ?')
  }

  load(): readonly DropTotal[] {
    return this.#connection
      .bigStatement<[], SqlDrop>('SELECT * FROM drops')
      .all()
      .map((row) => ({
        partitionKey: Number(row.partition_key),
        reason: row.reason,
        messageCount: Number(row.message_count),
        sizeBytes: Number(row.size_bytes),
        fromOffset: row.from_offset,
        endOffset: row.end_offset,
      }))
  }

  save(totals: readonly DropTotal[], removedKeys: readonly number[]): void {
    this.#connection.softly(() => {
      for (const key of removedKeys) this.#delete.run(key)
      for (const { partitionKey, reason, messageCount, sizeBytes, fromOffset, endOffset } of totals) {
        this.#put.run(partitionKey, reason, messageCount, sizeBytes, toInteger(fromOffset), toInteger(endOffset))
      }
    })
  }
}
