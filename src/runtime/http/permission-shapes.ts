/** Permissions out of JSON: all rights of a level must be named, streams and topics may be absent or null. Pure. */
import type { Permissions } from '../../sdk/wire/permissions.ts'
import { permissionsFromJson } from '../broker/permissions-json.ts'
import { rejection } from './rejection.ts'
import { boolean, entries, object, optional, type Shape } from './shape.ts'

const global = object({
  manage_servers: boolean,
  read_servers: boolean,
  manage_users: boolean,
  read_users: boolean,
  manage_streams: boolean,
  read_streams: boolean,
  manage_topics: boolean,
  read_topics: boolean,
  poll_messages: boolean,
  send_messages: boolean,
})
const topic = object({ manage_topic: boolean, read_topic: boolean, poll_messages: boolean, send_messages: boolean })
const stream = object({
  manage_stream: boolean,
  read_stream: boolean,
  manage_topics: boolean,
  read_topics: boolean,
  poll_messages: boolean,
  send_messages: boolean,
  topics: optional(byId(topic)),
})
const root = object({ global, streams: optional(byId(stream)) })

/** Judges the shape with Iggy's sentences; what the rights mean is the broker's to read. */
export const permissions: Shape<Permissions> = (found, path) => {
  root(found, path)
  return permissionsFromJson(found)
}

/**
 * Iggy's server stumbles over a key that is no number while it still parses: 400, not 422. Each number has one form, so that
 * nobody has two sets of rights in one stream.
 */
function byId<T>(shape: Shape<T>): Shape<ReadonlyMap<string, T>> {
  const values = entries(shape)
  return (found, path) => {
    const given = values(found, path)
    for (const key of given.keys()) {
      if (/^(0|[1-9]\d{0,9})$/.test(key) && Number(key) <= 0xffff_ffff) continue
      const sentence = `${path}.?: invalid value: expected key to be a number in quotes`
      throw rejection(400, `Failed to parse the request body as JSON: ${sentence}`)
    }
    return given
  }
}
