/**
 * This connection's place in a consumer group: creates and joins the group, learns its partitions, and does so again after
 * each reconnect. Newer servers are asked what this member may poll now; older ones tell it by how they answer polls.
 */
import { EdgeError } from '../../errors.ts'
import type { Identifier } from '../wire/primitives.ts'
import type { Client } from './client.ts'

export class GroupMembership {
  readonly #client: Client
  readonly #stream: Identifier
  readonly #topic: Identifier
  readonly #name: string
  readonly #unsubscribe: () => void
  #isJoined = false
  #isStale = true
  #joinCount = 0
  /** A join that is on its way; never rejects. */
  #joining: Promise<void> = Promise.resolve()
  /** Left for good. */
  #isOver = false

  constructor(client: Client, stream: Identifier, topic: Identifier, name: string) {
    this.#client = client
    this.#stream = stream
    this.#topic = topic
    this.#name = name
    this.#unsubscribe = client.onReconnected(() => this.ended())
  }

  /** Whether the partitions known so far may no longer be right. */
  get isStale(): boolean {
    return this.#isStale || this.#client.state !== 'connected'
  }

  /** How often this member joined. Each time others may have read on meanwhile: what was known of positions is void. */
  get joinCount(): number {
    return this.#joinCount
  }

  /** Asks anew at the next turn. */
  invalidate(): void {
    this.#isStale = true
  }

  /** The server knows no such member, or no such group: joins anew at the next turn. */
  ended(): void {
    this.#isJoined = false
    this.#isStale = true
  }

  /** @returns the partitions that this member may read. */
  async partitions(): Promise<readonly number[]> {
    // What comes to be known while the answer is on its way makes it stale again.
    this.#isStale = false
    try {
      const known = this.#isJoined ? await this.#asked() : null
      if (known !== null) return known
      await this.#join()
      const partitions = await this.#asked()
      if (partitions !== null) return partitions
      this.#isJoined = false
      throw new EdgeError('EDGE_MEMBER_NOT_FOUND', `group ${this.#name}: this member is no longer known`)
    } catch (error) {
      this.#isStale = true
      throw error
    }
  }

  async leave(): Promise<void> {
    this.#unsubscribe()
    this.#isOver = true
    // What waits for the next connection is not waited for.
    if (this.#client.state === 'connected') await this.#joining
    await this.#endMembership()
  }

  async #endMembership(): Promise<void> {
    const isMember = this.#isJoined && this.#client.state === 'connected'
    this.#isJoined = false
    if (isMember) await this.#client.groups.leave(this.#stream, this.#topic, this.#name)
  }

  async #join(): Promise<void> {
    if (this.#isOver) throw new EdgeError('EDGE_SHUTTING_DOWN', `group ${this.#name}: this member has left`)
    const { groups } = this.#client
    if ((await groups.get(this.#stream, this.#topic, this.#name)) === null) {
      await groups.create(this.#stream, this.#topic, this.#name).catch((error) => {
        // Another member was faster.
        if (!(error instanceof EdgeError && error.code === 'EDGE_GROUP_NAME_TAKEN')) throw error
      })
    }
    const joining = groups.join(this.#stream, this.#topic, this.#name).then(() => this.#joined())
    this.#joining = joining.catch(() => {})
    await joining
  }

  async #joined(): Promise<void> {
    this.#isJoined = true
    this.#joinCount++
    // Left while this was on its way: partitions of a member that reads nothing are nobody's.
    if (this.#isOver) await this.#endMembership()
  }

  /** @returns null when this is no member. */
  #asked(): Promise<readonly number[] | null> {
    return this.#client.dialect === 'vsr' ? this.#synced() : this.#owned()
  }

  async #synced(): Promise<readonly number[] | null> {
    return (await this.#client.groups.sync(this.#stream, this.#topic, this.#name))?.partitions ?? null
  }

  /**
   * All of them: an older server names members by numbers of its own, so who owns what shows only in its answers. A poll
   * of a partition that is another member's comes back empty, under another partition's number.
   */
  async #owned(): Promise<readonly number[] | null> {
    const topic = await this.#client.topics.get(this.#stream, this.#topic)
    return topic?.partitions.map(({ id }) => id) ?? null
  }
}
