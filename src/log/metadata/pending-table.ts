/**
 * Rows in memory, by partition key and one more column, that remember which of them the disk does not have yet. Pure.
 *
 * Consumer offsets and cursors change with every poll and must not cost a write each: they change here, and at most once a
 * second the changed ones go to SQLite in one transaction. A row that changed a hundred times is written once.
 */
export class PendingTable<Column extends string | number, Value> {
  readonly #rows = new Map<number, Map<Column, Value>>()
  /** Of each row that changed: whether the disk has it, in whatever state. */
  readonly #pending = new Map<number, Map<Column, boolean>>()
  #rowCount = 0
  #pendingCount = 0
  #removedCount = 0

  /** Rows of all partitions. */
  get rowCount(): number {
    return this.#rowCount
  }

  /** Rows that changed since they were last written. */
  get pendingCount(): number {
    return this.#pendingCount
  }

  /** Of those, rows that are gone from memory and not from the disk yet: no bound on the rows that are there bounds them. */
  get removedCount(): number {
    return this.#removedCount
  }

  get(partitionKey: number, column: Column): Value | undefined {
    return this.#rows.get(partitionKey)?.get(column)
  }

  /** All rows of a partition; a live view, empty when there are none. */
  of(partitionKey: number): ReadonlyMap<Column, Value> {
    return this.#rows.get(partitionKey) ?? new Map()
  }

  partitionKeys(): IterableIterator<number> {
    return this.#rows.keys()
  }

  countOf(partitionKey: number): number {
    return this.#rows.get(partitionKey)?.size ?? 0
  }

  /** Puts a row that came from the disk: nothing to write. */
  load(partitionKey: number, column: Column, value: Value): void {
    const rows = this.#rowsOf(partitionKey)
    if (!rows.has(column)) this.#rowCount++
    rows.set(column, value)
  }

  set(partitionKey: number, column: Column, value: Value): void {
    const rows = this.#rowsOf(partitionKey)
    if (!rows.has(column) && this.#isPending(partitionKey, column)) this.#removedCount--
    this.#touch(partitionKey, column, rows.has(column))
    if (!rows.has(column)) this.#rowCount++
    rows.set(column, value)
  }

  /**
   * Of a row that the disk never had nothing stays: rows that come and go faster than they are written, or while nothing can
   * be written, would add up.
   *
   * @returns false when there was no such row.
   */
  delete(partitionKey: number, column: Column): boolean {
    const rows = this.#rows.get(partitionKey)
    if (!rows?.delete(column)) return false
    this.#rowCount--
    if (rows.size === 0) this.#rows.delete(partitionKey)
    if (this.#pending.get(partitionKey)?.get(column) === false) {
      this.#settle(partitionKey, column)
    } else {
      this.#removedCount++
      this.#touch(partitionKey, column, true)
    }
    return true
  }

  /** Deletes every row of a partition. @returns how many there were. */
  deletePartition(partitionKey: number): number {
    const columns = [...this.of(partitionKey).keys()]
    for (const column of columns) this.delete(partitionKey, column)
    return columns.length
  }

  /** Up to `limit` rows to write; `value` undefined means that the row is to be deleted. Stay pending until `written`. */
  pending(limit: number): { partitionKey: number; column: Column; value: Value | undefined }[] {
    const taken: { partitionKey: number; column: Column; value: Value | undefined }[] = []
    for (const [partitionKey, columns] of this.#pending) {
      for (const column of columns.keys()) {
        if (taken.length >= limit) return taken
        taken.push({ partitionKey, column, value: this.get(partitionKey, column) })
      }
    }
    return taken
  }

  /** These rows are on the disk as they were handed out; call it in the same turn. */
  written(rows: readonly { partitionKey: number; column: Column }[]): void {
    for (const { partitionKey, column } of rows) {
      if (!this.#isPending(partitionKey, column)) continue
      if (this.get(partitionKey, column) === undefined) this.#removedCount--
      this.#settle(partitionKey, column)
    }
  }

  #settle(partitionKey: number, column: Column): void {
    const columns = this.#pending.get(partitionKey)
    if (!columns?.delete(column)) return
    this.#pendingCount--
    if (columns.size === 0) this.#pending.delete(partitionKey)
  }

  #isPending(partitionKey: number, column: Column): boolean {
    return this.#pending.get(partitionKey)?.has(column) === true
  }

  #rowsOf(partitionKey: number): Map<Column, Value> {
    let rows = this.#rows.get(partitionKey)
    if (rows === undefined) {
      rows = new Map()
      this.#rows.set(partitionKey, rows)
    }
    return rows
  }

  #touch(partitionKey: number, column: Column, isStored: boolean): void {
    let columns = this.#pending.get(partitionKey)
    if (columns === undefined) {
      columns = new Map()
      this.#pending.set(partitionKey, columns)
    }
    if (columns.has(column)) return
    columns.set(column, isStored)
    this.#pendingCount++
  }
}
