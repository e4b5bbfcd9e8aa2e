import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Stream, Topic } from '../../../src/log/api.ts'
import { partitionText, topicText } from '../../../src/log/place-text.ts'
import { topicOptions } from '../../support/topic-options.ts'

const topic: Topic = {
  id: 2,
  streamId: 1,
  name: 'pumps\n"two"',
  createdAtUs: 0n,
  options: topicOptions('durable'),
  partitions: [],
}
const stream: Stream = { id: 1, name: 'plant', createdAtUs: 0n, topics: new Map([[2, topic]]) }
const names = { streams: new Map([[1, stream]]) }

test('a partition is called by the names of its stream and topic, on one line', () => {
  assert.equal(
    partitionText(names, { streamId: 1, topicId: 2, partitionId: 3 }),
    'stream "plant", topic "pumps\\n\\"two\\"", partition 3',
  )
})

test('what has no name any more is called by its number', () => {
  assert.equal(topicText(names, { streamId: 1, id: 7 }), 'stream "plant", topic 7')
  assert.equal(topicText(names, { streamId: 4, id: 7 }), 'stream 4, topic 7')
})
