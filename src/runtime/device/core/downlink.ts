/** Messages on their way down: subscribe, poll, message, result, end. Pure. */
import type { EdgeError } from '../../../errors.ts'
import { EDGE_CODES, type EdgeLimits, edgeCodeOf, type Frame, type StartFrom } from '../../../sdk/wire/edge/index.ts'
import { shortText } from './aliases.ts'
import type { Effect, Moment, ReadFacts, SourceFacts } from './exchange.ts'
import { errorAbout, errorNamed } from './replies.ts'
import { Subscription } from './subscription.ts'

/** What a `message` frame takes beside its body: head, five elements, options. */
const MESSAGE_FRAME_OVERHEAD_BYTES = 64
/**
 * However much a device asks for: four subscriptions together stay below what may wait to be written to a stream, also where
 * each has one message of the largest size under way.
 */
const MAX_WINDOW_BYTES = 32 * 1024
const MAX_WINDOW_MESSAGES = 256

export interface DownlinkOptions {
  readonly deviceName: string
  readonly mayReadAllKeys: boolean
  readonly limits: EdgeLimits
  /** Largest frame the device takes. */
  readonly maxFrameBytes: number
}

/** Where the device wants to begin; which log its offset is of, where it says so. */
interface Start {
  readonly from: StartFrom
  readonly incarnation: number | undefined
}

export class Downlink {
  readonly #options: DownlinkOptions
  readonly #subscriptions = new Map<number, { readonly subscription: Subscription; readonly start: Start }>()

  constructor(options: DownlinkOptions) {
    this.#options = options
  }

  subscribe(stream: number, frame: Frame<'subscribe'>): Effect[] {
    const { subscription: id, options } = frame
    const refuse = (name: 'valueInvalid' | 'limitReached' | 'forbidden' | 'frameUnknown', text: string) => [
      errorNamed(stream, 'subscribe', id, name, text),
    ]
    if (this.#subscriptions.has(id)) return refuse('valueInvalid', 'subscription is in use')
    if (this.#subscriptions.size >= this.#options.limits.subscriptions) {
      return refuse('limitReached', `at most ${this.#options.limits.subscriptions} subscriptions`)
    }
    if (frame.from === 'last-value') return refuse('frameUnknown', 'last values are not available')
    const isForAll = options?.allKeys === true
    if (isForAll && !this.#options.mayReadAllKeys) return refuse('forbidden', 'messages of other devices')
    const subscription = new Subscription({
      id,
      stream,
      windowBytes: Math.min(frame.window.bytes, MAX_WINDOW_BYTES),
      windowMessages: Math.min(frame.window.messages, MAX_WINDOW_MESSAGES),
      deviceName: isForAll ? undefined : this.#options.deviceName,
      maxMessages: options?.maxMessages,
    })
    this.#subscriptions.set(id, { subscription, start: { from: frame.from, incarnation: options?.incarnation } })
    return [{ type: 'open-source', subscription: id, topic: frame.topic, partition: options?.partition }]
  }

  opened(id: number, source: SourceFacts): Effect[] {
    const found = this.#subscriptions.get(id)
    if (found === undefined) return []
    const { subscription, start } = found
    const { stream } = subscription.options
    const wanted = startOf(start.from, source)
    // Retention may have taken the offset a device asks for, or the one it stored; only the first is worth telling.
    const isBelow = wanted < source.startOffset
    const isOfAnother = isOfAnotherLog(start, source)
    const next = isBelow || isOfAnother ? source.startOffset : wanted
    subscription.start(next, source.endOffset)
    const isGone = isOfAnother || (typeof start.from === 'bigint' && isBelow)
    const gone = isGone ? [errorNamed(stream, 'subscribe', id, 'offsetGone', `goes on at ${next}`)] : []
    const frame: Frame = { type: 'subscribed', subscription: id, next, incarnation: source.incarnation }
    return [{ type: 'send', stream, frame }, ...gone, ...this.#goOn(subscription)]
  }

  refused(id: number, error: EdgeError): Effect[] {
    const found = this.#subscriptions.get(id)
    this.#subscriptions.delete(id)
    if (found === undefined) return []
    const { code, retryMs } = EDGE_CODES[edgeCodeOf(error)]
    const refusal = { code, retryMs, text: shortText(error.message) }
    return [errorAbout(found.subscription.options.stream, 'subscribe', id, refusal)]
  }

  grew(id: number, endOffset: bigint): Effect[] {
    const subscription = this.#subscriptions.get(id)?.subscription
    if (subscription === undefined) return []
    subscription.grew(endOffset)
    return this.#goOn(subscription)
  }

  read(id: number, read: ReadFacts, now: Moment): Effect[] {
    const subscription = this.#subscriptions.get(id)?.subscription
    if (subscription === undefined) return []
    const { stream } = subscription.options
    const maxBody = this.#options.maxFrameBytes - MESSAGE_FRAME_OVERHEAD_BYTES
    const effects: Effect[] = read.hasHole
      ? [errorNamed(stream, 'subscribe', id, 'unreadable', 'a range was left out')]
      : []
    const { taken, tooLarge } = subscription.take(read.messages, read.nextOffset, maxBody)
    for (const offset of tooLarge) {
      effects.push({ type: 'lost', reason: 'message-too-large', lane: 0, first: Number(offset), count: 1 })
    }
    for (const { message, skippedCount } of taken) {
      const ageMs = Number((now.wallUs - message.appendTimeUs) / 1000n)
      const frame: Frame = {
        type: 'message',
        subscription: id,
        offset: message.offset,
        ageMs: now.isWallTrusted && ageMs >= 0 ? ageMs : null,
        body: message.body,
        ...(skippedCount > 0 ? { options: { skippedCount } } : {}),
      }
      effects.push({ type: 'send', stream, frame })
    }
    subscription.grew(read.endOffset)
    return [...effects, ...this.#stored(subscription, subscription.advanced()), ...this.#goOn(subscription)]
  }

  readFailed(id: number, error: EdgeError): Effect[] {
    const subscription = this.#subscriptions.get(id)?.subscription
    if (subscription === undefined) return []
    subscription.readFailed()
    const { code } = EDGE_CODES[edgeCodeOf(error)]
    return [...this.#finish(subscription, code), ...this.#close(id)]
  }

  result(stream: number, frame: Frame<'result'>): Effect[] {
    const subscription = this.#subscriptions.get(frame.subscription)?.subscription
    if (subscription === undefined)
      return [errorNamed(stream, 'result', frame.subscription, 'valueInvalid', 'no such subscription')]
    if (frame.status !== 0) {
      return [errorNamed(stream, 'result', frame.subscription, 'frameUnknown', 'results of commands are not available')]
    }
    const stored = this.#stored(subscription, subscription.answered(frame.offset))
    return [...stored, ...this.#goOn(subscription)]
  }

  /** The device wants no more. */
  end(frame: Frame<'end'>): Effect[] {
    return this.#subscriptions.has(frame.subscription) ? this.#close(frame.subscription) : []
  }

  /** Subscriptions live on their stream. */
  streamEnded(stream: number): Effect[] {
    const ended = [...this.#subscriptions.values()].filter(({ subscription }) => subscription.options.stream === stream)
    return ended.flatMap(({ subscription }) => this.#close(subscription.options.id))
  }

  closeAll(): Effect[] {
    return [...this.#subscriptions.keys()].flatMap((id) => this.#close(id))
  }

  #goOn(subscription: Subscription): Effect[] {
    const wants = subscription.wants()
    if (wants !== undefined) return [{ type: 'read', subscription: subscription.options.id, ...wants }]
    if (!subscription.isFinished || this.#ended.has(subscription)) return this.#closeWhenAnswered(subscription)
    this.#ended.add(subscription)
    return [...this.#finish(subscription), ...this.#closeWhenAnswered(subscription)]
  }

  /** Polls whose `end` was sent: they stay until everything they brought is answered. */
  readonly #ended = new WeakSet<Subscription>()

  #closeWhenAnswered(subscription: Subscription): Effect[] {
    if (!this.#ended.has(subscription) || subscription.openCount > 0) return []
    return this.#close(subscription.options.id)
  }

  #finish(subscription: Subscription, code?: number): Effect[] {
    const { id, stream } = subscription.options
    return [{ type: 'send', stream, frame: { type: 'end', subscription: id, ...(code === undefined ? {} : { code }) } }]
  }

  #stored(subscription: Subscription, cursor: bigint | undefined): Effect[] {
    return cursor === undefined ? [] : [{ type: 'store-offset', subscription: subscription.options.id, offset: cursor }]
  }

  #close(id: number): Effect[] {
    return this.#subscriptions.delete(id) ? [{ type: 'close-source', subscription: id }] : []
  }
}

/**
 * An offset of a topic that was deleted, or of an edge that was replaced, says nothing about the one that has the name now:
 * to go on there would leave messages out. Of a device that does not say which log it read, the end tells.
 */
function isOfAnotherLog({ from, incarnation }: Start, source: SourceFacts): boolean {
  if (typeof from !== 'bigint') return false
  return incarnation === undefined ? from > source.endOffset : incarnation !== source.incarnation
}

/** Without a stored offset, `stored` begins at the oldest: a device's first command must not be missed. */
function startOf(from: StartFrom, source: SourceFacts): bigint {
  if (typeof from === 'bigint') return from
  if (from === 'new') return source.endOffset
  if (from === 'stored' && source.storedOffset !== undefined) return source.storedOffset + 1n
  return source.startOffset
}
