/** An upstream that confirms what it does not keep: how often it is sent to. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Forwarder } from '../../../../src/sync/core/forwarder.ts'
import type { Effect, ForwarderOptions, Input } from '../../../../src/sync/core/forwarder-protocol.ts'
import { idPrefix, messageId } from '../../../../src/sync/core/message-id.ts'

const COUNT = 20n
const OPTIONS: ForwarderOptions = {
  idPrefix: (incarnation) => idPrefix(new Uint8Array(16), 1, incarnation),
  cursor: undefined,
  logStart: 0n,
  durableEnd: COUNT,
  foundEnd: 0n,
  bounds: { maxCount: 4, maxBytes: 10_000 },
  retry: { minDelayUs: 1000, maxDelayUs: 2000 },
  blockedRetryUs: 30_000_000,
  settleUs: 0,
  maxRefusals: 3,
  maxDeadLettersInRow: 4,
  tailPageCount: 10,
  tailScanMaxCount: 100,
  random: () => 0.5,
}

/** Has room for so many messages, and gives up what comes beyond. */
class FullTopic {
  room = 6n
  sendCount = 0
  readonly #kept: bigint[] = []
  #batch: { from: bigint; count: number } = { from: 0n, count: 0 }

  get keptCount(): number {
    return this.#kept.length
  }

  answer(effect: Effect): Input | undefined {
    if (!('ticket' in effect)) return undefined
    const { ticket } = effect
    if (effect.type === 'ensure-topic') return { type: 'topic-ready', ticket, incarnation: '1' }
    if (effect.type === 'poll-tail') {
      const messages = this.#kept.map((from, at) => ({ offset: BigInt(at), id: messageId(OPTIONS.idPrefix(0), from) }))
      return {
        type: 'tail',
        ticket,
        page: {
          currentOffset: BigInt(messages.length - 1),
          messages: messages.slice(-10),
          sizeBytes: 0,
          contentAt: () => null,
        },
      }
    }
    if (effect.type === 'read') {
      const nextOffset = effect.fromOffset + 4n < COUNT ? effect.fromOffset + 4n : COUNT
      this.#batch = { from: effect.fromOffset, count: Number(nextOffset - effect.fromOffset) }
      return { type: 'read', ticket, read: { ...this.#batch, sizeBytes: 40, nextOffset, hole: null } }
    }
    return undefined
  }

  send(ticket: number): Input {
    this.sendCount++
    const upstreamBaseOffset = BigInt(this.#kept.length)
    const { from, count } = this.#batch
    if (upstreamBaseOffset + BigInt(count) <= this.room) {
      for (let index = 0; index < count; index++) this.#kept.push(from + BigInt(index))
    }
    return { type: 'confirmed', ticket, upstreamBaseOffset }
  }
}

function run(forwarder: Forwarder, topic: FullTopic, input: Input, nowUs: number): void {
  const left = [...forwarder.step(input, nowUs)]
  for (let steps = 0; left.length > 0; steps++) {
    assert.ok(steps < 1000, 'sent to without end')
    const effect = left.shift()
    if (effect === undefined) return
    const answer = topic.answer(effect)
    if (answer !== undefined) left.push(...forwarder.step(answer, nowUs))
    if (effect.type !== 'send') continue
    left.push(...forwarder.step({ type: 'sent', ticket: effect.ticket }, nowUs))
    left.push(...forwarder.step(topic.send(effect.ticket), nowUs))
  }
}

test('a full topic upstream that drops what it confirms is sent to slowly, and gets all once it has room', () => {
  const forwarder = new Forwarder(OPTIONS, 0)
  const topic = new FullTopic()
  run(forwarder, topic, { type: 'link-up' }, 1000)
  const { state, reason, nextAttemptUs } = forwarder.view()
  assert.equal(state, 'blocked')
  assert.match(reason?.message ?? '', /confirmed the messages from offset 4 on 5 times and keeps none/)
  const { sendCount } = topic
  run(forwarder, topic, { type: 'woken' }, nextAttemptUs ?? 0)
  assert.equal(forwarder.view().state, 'blocked')
  assert.ok(topic.sendCount - sendCount <= 2)
  topic.room = COUNT
  run(forwarder, topic, { type: 'woken' }, forwarder.view().nextAttemptUs ?? 0)
  assert.equal(forwarder.view().state, 'caught-up')
  assert.equal(topic.keptCount, Number(COUNT))
})
