/** Streams and topics of a catalog by their numbers, for tests that know which ones there are. */
import assert from 'node:assert/strict'
import type { Catalog, Stream, Topic } from '../../src/log/api.ts'

export function streamAt(catalog: Catalog, streamId: number): Stream {
  const stream = catalog.stream(streamId)
  assert.ok(stream, `stream ${streamId}`)
  return stream
}

export function topicAt(catalog: Catalog, streamId: number, topicId: number): Topic {
  const topic = catalog.topic(streamId, topicId)
  assert.ok(topic, `topic ${streamId}/${topicId}`)
  return topic
}
