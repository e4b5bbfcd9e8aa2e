/** Users, tokens, groups and offsets in memory: the metadata of `MemoryLog`. */
import { EdgeError } from '../../src/errors.ts'
import type { ConsumerKind, CursorRow, GroupRow, MetadataStore, TokenRow, UserRow } from '../../src/log/api.ts'

export class MemoryMetadata implements MetadataStore {
  readonly users = new Map<number, UserRow>()
  readonly #tokens = new Map<string, TokenRow>()
  readonly #groups: GroupRow[] = []
  readonly #nextGroupIds = new Map<string, number>()
  readonly #offsets = new Map<
    string,
    { partitionKey: number; kind: ConsumerKind; consumerId: number; offset: bigint }
  >()
  readonly #cursors = new Map<string, { route: string; partitionKey: number; row: CursorRow }>()
  readonly #settings = new Map<string, string>()

  async putUser(row: UserRow): Promise<void> {
    this.users.set(row.id, row)
  }

  async deleteUser(id: number): Promise<void> {
    this.users.delete(id)
    for (const [hash, token] of this.#tokens) if (token.userId === id) this.#tokens.delete(hash)
  }

  tokensOf(userId: number): readonly TokenRow[] {
    return [...this.#tokens.values()].filter((token) => token.userId === userId)
  }

  tokenByHash(hash: string): TokenRow | undefined {
    return this.#tokens.get(hash)
  }

  async putToken(row: TokenRow): Promise<void> {
    this.#tokens.set(row.hash, row)
  }

  async deleteToken(userId: number, name: string): Promise<void> {
    for (const [hash, token] of this.#tokens) {
      if (token.userId === userId && token.name === name) this.#tokens.delete(hash)
    }
  }

  groupsOf(streamId: number, topicId: number): readonly GroupRow[] {
    return this.#groups.filter((group) => group.streamId === streamId && group.topicId === topicId)
  }

  async createGroup(streamId: number, topicId: number, name: string): Promise<GroupRow> {
    if (this.groupsOf(streamId, topicId).some((group) => group.name === name)) {
      throw new EdgeError('EDGE_GROUP_NAME_TAKEN', `group ${name}`)
    }
    const key = `${streamId}/${topicId}`
    const id = this.#nextGroupIds.get(key) ?? 0
    this.#nextGroupIds.set(key, id + 1)
    const group = { streamId, topicId, id, name }
    this.#groups.push(group)
    return group
  }

  async deleteGroup(streamId: number, topicId: number, groupId: number): Promise<void> {
    const index = this.#groups.findIndex(
      (group) => group.streamId === streamId && group.topicId === topicId && group.id === groupId,
    )
    if (index >= 0) this.#groups.splice(index, 1)
  }

  forgetTopic(streamId: number, topicId: number): void {
    for (const group of this.groupsOf(streamId, topicId)) this.#groups.splice(this.#groups.indexOf(group), 1)
    this.#nextGroupIds.delete(`${streamId}/${topicId}`)
  }

  offset(partitionKey: number, kind: ConsumerKind, consumerId: number): bigint | undefined {
    return this.#offsets.get(`${partitionKey}/${kind}/${consumerId}`)?.offset
  }

  setOffset(partitionKey: number, kind: ConsumerKind, consumerId: number, offset: bigint): void {
    this.#offsets.set(`${partitionKey}/${kind}/${consumerId}`, { partitionKey, kind, consumerId, offset })
  }

  deleteOffset(partitionKey: number, kind: ConsumerKind, consumerId: number): boolean {
    return this.#offsets.delete(`${partitionKey}/${kind}/${consumerId}`)
  }

  deleteOffsetsOf(partitionKey: number): number {
    const rows = this.offsetsOf(partitionKey)
    for (const { kind, consumerId } of rows) this.deleteOffset(partitionKey, kind, consumerId)
    return rows.length
  }

  offsetsOf(partitionKey: number) {
    return [...this.#offsets.values()].filter((row) => row.partitionKey === partitionKey)
  }

  cursor(route: string, partitionKey: number): CursorRow | undefined {
    return this.#cursors.get(`${route}/${partitionKey}`)?.row
  }

  setCursor(route: string, partitionKey: number, row: CursorRow): void {
    this.#cursors.set(`${route}/${partitionKey}`, { route, partitionKey, row })
  }

  useRoutes(): void {}

  cursorsOf(partitionKey: number) {
    return [...this.#cursors.values()].filter((cursor) => cursor.partitionKey === partitionKey)
  }

  deleteCursors(route: string): void {
    for (const [key, cursor] of this.#cursors) if (cursor.route === route) this.#cursors.delete(key)
  }

  setting(name: string): string | undefined {
    return this.#settings.get(name)
  }

  async setSetting(name: string, value: string): Promise<void> {
    this.#settings.set(name, value)
  }

  async flush(): Promise<void> {}
}
