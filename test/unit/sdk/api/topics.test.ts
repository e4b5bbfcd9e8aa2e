import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../../src/clock.ts'
import type { Requester } from '../../../../src/sdk/api/requester.ts'
import { type TopicSettings, TopicsApi } from '../../../../src/sdk/api/topics.ts'
import type { Option } from '../../../../src/sdk/wire/options.ts'

/** @returns the options that a server would get. */
async function sentOf(settings: TopicSettings): Promise<readonly Option[]> {
  let sent: readonly Option[] = []
  const requester: Requester = {
    dialect: 'vsr',
    clock: systemClock,
    request: async (_code, body) => {
      sent = (body as unknown as { options: readonly Option[] }).options
      return null as never
    },
  }
  await new TopicsApi(requester).create('plant', 'pumps', settings)
  return sent
}

test('options go in the order of their names, each as its kind', async () => {
  const options = { durability: 'persisted', messages_required_to_save: 2 ** 32 - 1, preallocate_segments: true }
  const sent = await sentOf({ maxTopicSizeBytes: 2n ** 64n - 1n, options })
  assert.deepEqual(
    sent.map(({ key, kind, valueBytes }) => [key, kind, Buffer.from(valueBytes).toString('hex')]),
    [
      ['durability', 2, '706572736973746564'],
      ['max_topic_size', 12, 'ffffffffffffffff'],
      ['messages_required_to_save', 11, 'ffffffff'],
      ['preallocate_segments', 3, '01'],
    ],
  )
})

test('a number that does not fit its option is refused and becomes no other one', async () => {
  const refused: readonly TopicSettings[] = [
    { maxTopicSizeBytes: -1n },
    { messageExpiryUs: 2n ** 64n },
    { options: { messages_required_to_save: 2 ** 32 } },
    { options: { messages_required_to_save: 1.5 } },
    { options: { messages_required_to_save: Number.NaN } },
  ]
  for (const settings of refused) await assert.rejects(sentOf(settings), { code: 'EDGE_OPTION_INVALID' })
})
