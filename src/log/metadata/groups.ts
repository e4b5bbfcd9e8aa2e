import { EdgeError } from '../../errors.ts'
import type { GroupRow } from '../api.ts'
import { isNameValid } from '../catalog/name.ts'
import type { Connection } from './connection.ts'

export const MAX_GROUPS_PER_TOPIC = 4096
/** Of all topics: their names are in memory, some 200 bytes each. Over HTTP a poll makes the group that it names. */
export const MAX_GROUPS = 16_384

interface SqlGroup {
  stream_id: number
  topic_id: number
  id: number
  name: string
}

interface TopicGroups {
  nextId: number
  readonly byId: Map<number, GroupRow>
}

/**
 * Consumer groups by topic. The counter of a topic only rises, so an offset that a client still holds for a deleted group
 * never becomes another group's.
 */
export class Groups {
  readonly #topics = new Map<string, TopicGroups>()
  readonly #connection: Connection
  readonly #insert
  readonly #delete
  readonly #count
  readonly #deleteTopic
  readonly #deleteCounter

  constructor(connection: Connection) {
    this.#connection = connection
    this.#insert = connection.statement(
      'INSERT INTO consumer_groups (stream_id, topic_id, id, name) VALUES (?, ?, ?, ?)',
    )
    this.#delete = connection.statement('DELETE FROM consumer_groups WHERE stream_id = ? AND topic_id = ? AND id = ?')
    this.#count = connection.statement(
      'INSERT OR REPLACE INTO group_counters (stream_id, topic_id, next_id) VALUES (?, ?, ?)',
    )
    this.#deleteTopic = connection.statement('DELETE FROM consumer_groups WHERE stream_id = ? AND topic_id = ?')
    this.#deleteCounter = connection.statement('DELETE FROM group_counters WHERE stream_id = ? AND topic_id = ?')
    this.#load()
  }

  of(streamId: number, topicId: number): readonly GroupRow[] {
    return [...(this.#topics.get(topicOf(streamId, topicId))?.byId.values() ?? [])]
  }

  /** @throws EDGE_NAME_INVALID, EDGE_GROUP_NAME_TAKEN, EDGE_LIMIT_REACHED. */
  create(streamId: number, topicId: number, name: string): GroupRow {
    if (!isNameValid(name)) throw new EdgeError('EDGE_NAME_INVALID', 'a group name is 1..255 bytes of UTF-8')
    const groups = this.#topics.get(topicOf(streamId, topicId)) ?? { nextId: 0, byId: new Map() }
    for (const group of groups.byId.values()) {
      if (group.name !== name) continue
      throw new EdgeError(
        'EDGE_GROUP_NAME_TAKEN',
        `topic ${streamId}/${topicId} has a group ${JSON.stringify(name)} already`,
      )
    }
    if (groups.byId.size >= MAX_GROUPS_PER_TOPIC) {
      throw new EdgeError(
        'EDGE_LIMIT_REACHED',
        `topic ${streamId}/${topicId} has ${MAX_GROUPS_PER_TOPIC} groups already: delete some`,
      )
    }
    if (this.#groupCount() >= MAX_GROUPS)
      throw new EdgeError('EDGE_LIMIT_REACHED', `all topics have ${MAX_GROUPS} groups already: delete some`)
    const row: GroupRow = { streamId, topicId, id: groups.nextId, name }
    this.#connection.durably(() => {
      this.#insert.run(streamId, topicId, row.id, name)
      this.#count.run(streamId, topicId, row.id + 1)
    })
    groups.nextId = row.id + 1
    groups.byId.set(row.id, row)
    this.#topics.set(topicOf(streamId, topicId), groups)
    return row
  }

  /** @throws EDGE_GROUP_NOT_FOUND. */
  delete(streamId: number, topicId: number, groupId: number): void {
    const groups = this.#topics.get(topicOf(streamId, topicId))
    if (!groups?.byId.has(groupId)) {
      throw new EdgeError('EDGE_GROUP_NOT_FOUND', `topic ${streamId}/${topicId} has no group ${groupId}`)
    }
    this.#connection.durably(() => {
      this.#delete.run(streamId, topicId, groupId)
    })
    groups.byId.delete(groupId)
  }

  /** The topic is gone; another may get its id. Call inside a transaction, then `forget`. */
  deleteTopicRows(streamId: number, topicId: number): void {
    this.#deleteTopic.run(streamId, topicId)
    this.#deleteCounter.run(streamId, topicId)
  }

  forgetTopic(streamId: number, topicId: number): void {
    this.#topics.delete(topicOf(streamId, topicId))
  }

  has(streamId: number, topicId: number): boolean {
    return this.#topics.has(topicOf(streamId, topicId))
  }

  /** Topics that have groups or had some. */
  topics(): { streamId: number; topicId: number }[] {
    return [...this.#topics.keys()].map((text) => {
      const [streamId = 0, topicId = 0] = text.split('/').map(Number)
      return { streamId, topicId }
    })
  }

  #groupCount(): number {
    let count = 0
    for (const { byId } of this.#topics.values()) count += byId.size
    return count
  }

  #load(): void {
    const groups = this.#connection.statement<[], SqlGroup>(
      'SELECT * FROM consumer_groups ORDER BY stream_id, topic_id, id',
    )
    for (const row of groups.iterate()) {
      const topic = this.#topicFor(row.stream_id, row.topic_id)
      topic.byId.set(row.id, { streamId: row.stream_id, topicId: row.topic_id, id: row.id, name: row.name })
      topic.nextId = Math.max(topic.nextId, row.id + 1)
    }
    const counters = this.#connection.statement<[], { stream_id: number; topic_id: number; next_id: number }>(
      'SELECT * FROM group_counters',
    )
    for (const row of counters.iterate()) {
      const topic = this.#topicFor(row.stream_id, row.topic_id)
      topic.nextId = Math.max(topic.nextId, row.next_id)
    }
  }

  #topicFor(streamId: number, topicId: number): TopicGroups {
    let topic = this.#topics.get(topicOf(streamId, topicId))
    if (topic === undefined) {
      topic = { nextId: 0, byId: new Map() }
      this.#topics.set(topicOf(streamId, topicId), topic)
    }
    return topic
  }
}

function topicOf(streamId: number, topicId: number): string {
  return `${streamId}/${topicId}`
}
