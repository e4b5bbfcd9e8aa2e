/**
 * Everything that is not a message, in one SQLite file: the log's `MetadataStore`, and beside it the tables that only the
 * log reads. Reads come from memory. docs/formats/metadata.md says what each table is worth after a crash.
 */
import { EdgeError } from '../../errors.ts'
import { identityOf, isInPlace } from '../../file-identity.ts'
import type { ConsumerKind, CursorRow, GroupRow, MetadataStore, Partition, TokenRow, UserRow } from '../api.ts'
import { OFFSETS_ENDING, OFFSETS_FILE } from '../catalog/layout.ts'
import type { FlashUse } from '../flash-use.ts'
import { type NameSource, partitionText } from '../place-text.ts'
import type { HintStore, ProducerStore, ReportFinding } from '../ports.ts'
import type { Scheduler } from '../scheduler.ts'
import { LOG_SETTINGS } from '../settings.ts'
import { Accounts } from './accounts.ts'
import { Connection } from './connection.ts'
import { openDatabase } from './database.ts'
import { Groups } from './groups.ts'
import { DescriptorCopies, type DescriptorPlace, DropTotals, SqliteHints, SqliteProducers } from './log-tables.ts'
import { OffsetTrail } from './offset-trail.ts'
import { Progress } from './progress.ts'
import { WalMeter } from './wal-meter.ts'

export interface MetadataOptions {
  /** The SQLite file, or `:memory:`. */
  readonly path: string
  /** The native addon's file when it does not lie in `node_modules`: inside the single executable. */
  readonly nativeBinding?: string
  readonly scheduler: Scheduler
  readonly report: ReportFinding
  /** Moves a damaged database with its `-wal` and `-shm` out of the way. */
  readonly setAside: (path: string) => void
  readonly maxConsumerOffsets?: number
  /** Told of what is written, which waits longer while the budget is in debt; unbounded and not counted when left out. */
  readonly flash?: Pick<FlashUse, 'written' | 'delayFactor'>
  /** The store is not new: a database that is not there was lost. */
  readonly isExpected?: boolean
}

/** Keys of the topic's partitions, as the catalog knows them. */
export type TopicKeys = (streamId: number, topicId: number) => Iterable<number>

/** @throws {EdgeError} EDGE_STORE_NEWER, EDGE_STORE_IN_USE, EDGE_DISK_FULL, EDGE_IO. */
export function openMetadata(options: MetadataOptions): SqliteMetadata {
  const { database } = openDatabase(options)
  const trail = openTrail(options)
  try {
    return new SqliteMetadata(new Connection(database, placeCheck(options.path), meterOf(options)), options, trail)
  } catch (error) {
    // Its lock would keep out whoever tries again.
    trail?.close()
    database.close()
    throw error
  }
}

/** @returns throws EDGE_IO once the file is deleted or moved away: SQLite goes on in what nobody finds again. */
function placeCheck(path: string): () => void {
  if (path === ':memory:') return () => {}
  const opened = identityOf(path)
  return () => {
    if (isInPlace(opened, identityOf(path))) return
    throw new EdgeError('EDGE_IO', `${path} was deleted or moved away while the edge runs`, { details: { path } })
  }
}

function meterOf({ path, flash }: MetadataOptions): WalMeter | null {
  return path === ':memory:' || flash === undefined ? null : new WalMeter(path, flash.written)
}

/** The same with everything put off as long as the budget asks for. */
function paced(scheduler: Scheduler, delayFactor: () => number): Scheduler {
  return { ...scheduler, after: (milliseconds, task) => scheduler.after(milliseconds * delayFactor(), task) }
}

/** Without a trail everything works, and an end of the process costs a second of offsets. */
function openTrail({ path, report }: MetadataOptions): OffsetTrail | null {
  if (path === ':memory:') return null
  try {
    return OffsetTrail.open(path + OFFSETS_ENDING)
  } catch (error) {
    report({
      event: 'log.offsets.trail_missing',
      level: 'warn',
      text: `${OFFSETS_FILE} cannot be opened: consumer offsets of the last second are lost when the process is killed (${String(error)})`,
      fields: { path: OFFSETS_FILE },
    })
    return null
  }
}

export class SqliteMetadata implements MetadataStore {
  readonly hints: HintStore
  readonly producers: ProducerStore
  readonly copies: DescriptorCopies
  readonly drops: DropTotals
  readonly #connection: Connection
  readonly #accounts: Accounts
  readonly #groups: Groups
  readonly #progress: Progress
  readonly #hints: SqliteHints
  readonly #report: ReportFinding
  readonly #settings = new Map<string, string>()
  readonly #putSetting
  #topicKeys: TopicKeys = () => []
  /** Null: not known yet. */
  #routes: ReadonlySet<string> | null = null

  constructor(
    connection: Connection,
    options: Omit<MetadataOptions, 'path' | 'setAside'>,
    trail: OffsetTrail | null = null,
  ) {
    this.#connection = connection
    this.#report = options.report
    this.#accounts = new Accounts(connection)
    this.#groups = new Groups(connection)
    this.#progress = new Progress({
      connection,
      scheduler: options.flash === undefined ? options.scheduler : paced(options.scheduler, options.flash.delayFactor),
      report: options.report,
      maxConsumerOffsets: options.maxConsumerOffsets ?? LOG_SETTINGS.max_consumer_offsets.default,
      trail,
    })
    this.#hints = new SqliteHints(connection, options.report)
    this.hints = this.#hints
    this.producers = new SqliteProducers(connection)
    this.copies = new DescriptorCopies(connection)
    this.drops = new DropTotals(connection)
    this.#putSetting = connection.statement('INSERT OR REPLACE INTO settings (name, value) VALUES (?, ?)')
    const settings = connection.statement<[], { name: string; value: string }>('SELECT name, value FROM settings')
    for (const { name, value } of settings.iterate()) this.#settings.set(name, value)
  }

  get users(): ReadonlyMap<number, UserRow> {
    return this.#accounts.users
  }

  async putUser(row: UserRow): Promise<void> {
    this.#accounts.putUser(row)
  }

  async deleteUser(id: number): Promise<void> {
    this.#accounts.deleteUser(id)
  }

  tokensOf(userId: number): readonly TokenRow[] {
    return this.#accounts.tokensOf(userId)
  }

  tokenByHash(hash: string): TokenRow | undefined {
    return this.#accounts.tokenByHash(hash)
  }

  async putToken(row: TokenRow): Promise<void> {
    this.#accounts.putToken(row)
  }

  async deleteToken(userId: number, name: string): Promise<void> {
    this.#accounts.deleteToken(userId, name)
  }

  groupsOf(streamId: number, topicId: number): readonly GroupRow[] {
    return this.#groups.of(streamId, topicId)
  }

  async createGroup(streamId: number, topicId: number, name: string): Promise<GroupRow> {
    return this.#groups.create(streamId, topicId, name)
  }

  async deleteGroup(streamId: number, topicId: number, groupId: number): Promise<void> {
    this.#groups.delete(streamId, topicId, groupId)
    // A deleted group must not hold back retention. Its id is never given again, so a crash in between only leaves rows
    // that `forgetUnknown` takes at the next open.
    for (const key of this.#topicKeys(streamId, topicId)) this.#progress.deleteOffset(key, 'group', groupId)
  }

  offset(partitionKey: number, kind: ConsumerKind, consumerId: number): bigint | undefined {
    return this.#progress.offset(partitionKey, kind, consumerId)
  }

  setOffset(partitionKey: number, kind: ConsumerKind, consumerId: number, offset: bigint): void {
    this.#progress.setOffset(partitionKey, kind, consumerId, offset)
  }

  deleteOffset(partitionKey: number, kind: ConsumerKind, consumerId: number): boolean {
    return this.#progress.deleteOffset(partitionKey, kind, consumerId)
  }

  deleteOffsetsOf(partitionKey: number): number {
    return this.#progress.deleteOffsetsOf(partitionKey)
  }

  offsetsOf(partitionKey: number): Iterable<{ kind: ConsumerKind; consumerId: number; offset: bigint }> {
    return this.#progress.offsetsOf(partitionKey)
  }

  cursor(route: string, partitionKey: number): CursorRow | undefined {
    return this.#progress.cursor(route, partitionKey)
  }

  setCursor(route: string, partitionKey: number, row: CursorRow): void {
    this.#progress.setCursor(route, partitionKey, row)
  }

  *cursorsOf(partitionKey: number): Iterable<{ route: string; row: CursorRow }> {
    for (const cursor of this.#progress.cursorsOf(partitionKey))
      if (this.#routes === null || this.#routes.has(cursor.route)) yield cursor
  }

  useRoutes(routes: ReadonlySet<string>): void {
    this.#routes = routes
  }

  deleteCursors(route: string): void {
    this.#progress.deleteCursors(route)
  }

  setting(name: string): string | undefined {
    return this.#settings.get(name)
  }

  async setSetting(name: string, value: string): Promise<void> {
    this.#connection.durably(() => {
      this.#putSetting.run(name, value)
    })
    this.#settings.set(name, value)
  }

  async flush(): Promise<void> {
    this.#progress.flush('durably')
  }

  // ---- for the log alone ---------------------------------------------------------------------------------------------

  /** Lets groups find the partitions of their topic; called once, when the catalog is open. */
  useTopicKeys(topicKeys: TopicKeys): void {
    this.#topicKeys = topicKeys
  }

  /** Whether the topic has groups or had some. */
  hasGroupRows(streamId: number, topicId: number): boolean {
    return this.#groups.has(streamId, topicId)
  }

  /**
   * Forgets everything about deleted topics and partitions in one durable transaction.
   *
   * @param places descriptors that are gone; a stream's place takes its topics' copies along.
   */
  forget(places: readonly DescriptorPlace[], partitionKeys: readonly number[]): void {
    const topics = this.#groups.topics().filter((topic) => places.some((place) => covers(place, topic)))
    this.#connection.durably(() => {
      for (const place of places) this.copies.deleteRow(place)
      for (const { streamId, topicId } of topics) this.#groups.deleteTopicRows(streamId, topicId)
      // Rows of `drops` stay until retention has added them to the sum of all deleted partitions.
      for (const key of partitionKeys) this.#hints.deleteRow(key)
    })
    for (const { streamId, topicId } of topics) this.#groups.forgetTopic(streamId, topicId)
    for (const key of partitionKeys) this.#progress.deletePartition(key)
  }

  /**
   * Forgets rows whose topic or partition is not there any more: a crash between the removal of a folder and that of its
   * rows left them.
   */
  forgetUnknown(
    isTopicKnown: (streamId: number, topicId: number) => boolean,
    isKeyKnown: (key: number) => boolean,
  ): void {
    const places = this.#groups.topics().filter(({ streamId, topicId }) => !isTopicKnown(streamId, topicId))
    const keys = [...this.#progress.partitionKeys()].filter((key) => !isKeyKnown(key))
    if (places.length + keys.length > 0) this.forget(places, keys)
    for (const { streamId, topicId } of this.#groups.topics()) this.#forgetDeletedGroups(streamId, topicId)
    this.#forgetUnknownDevices()
  }

  /**
   * Lowers offsets and cursors above the end of a partition, once after recovery, and says so.
   *
   * @param names for what is said.
   * @returns how many were lowered.
   */
  clamp(
    partition: Pick<Partition, 'key' | 'streamId' | 'topicId' | 'partitionId' | 'nextOffset'>,
    names: NameSource,
  ): number {
    const { key, streamId, topicId, partitionId, nextOffset } = partition
    const count = this.#progress.clamp(key, nextOffset)
    if (count === 0) return 0
    this.#report({
      event: 'log.offsets.clamped',
      level: 'warn',
      text: `${count} consumer offsets or cursors of ${partitionText(names, partition)} lay behind the end of its log and are set to it (next offset ${nextOffset})`,
      fields: {
        stream_id: streamId,
        topic_id: topicId,
        partition_id: partitionId,
        next_offset: nextOffset,
        row_count: count,
      },
    })
    return count
  }

  /** Writes what is pending and closes the file. A disk that refuses is told and does not keep it open. Idempotent. */
  close(): void {
    if (this.#connection.isClosed) return
    this.#progress.close()
    this.#attemptAtEnd('consumer offsets and cursors of the last second are not written', () => this.#progress.flush())
    this.#progress.closeTrail()
    this.#attemptAtEnd('the write-ahead log is left for the next start', () => this.#connection.close())
  }

  #attemptAtEnd(consequence: string, task: () => void): void {
    try {
      task()
    } catch (error) {
      if (!(error instanceof EdgeError)) throw error
      this.#report({
        event: 'log.metadata.close_failed',
        level: 'warn',
        text: `${consequence}: ${error.message}`,
        fields: { error_code: error.code },
      })
    }
  }

  #forgetDeletedGroups(streamId: number, topicId: number): void {
    const ids = new Set(this.#groups.of(streamId, topicId).map((group) => group.id))
    for (const key of this.#topicKeys(streamId, topicId)) {
      for (const { kind, consumerId } of [...this.#progress.offsetsOf(key)]) {
        if (kind === 'group' && !ids.has(consumerId)) this.#progress.deleteOffset(key, kind, consumerId)
      }
    }
  }

  /** Their names went with a damaged database: nobody can come back for these offsets, and they would hold back retention. */
  #forgetUnknownDevices(): void {
    const known = new Set(this.producers.loadDevices().map(({ device }) => device))
    for (const key of this.#progress.partitionKeys()) {
      for (const { kind, consumerId } of [...this.#progress.offsetsOf(key)]) {
        if (kind === 'device' && !known.has(consumerId)) this.#progress.deleteOffset(key, kind, consumerId)
      }
    }
  }
}

function covers(place: DescriptorPlace, topic: DescriptorPlace): boolean {
  return place.streamId === topic.streamId && (place.topicId < 0 || place.topicId === topic.topicId)
}
