/** The subscriptions of a device: their numbers, what has come of each, and how it goes on in the next session. Pure. */
import { EdgeError } from '../../errors.ts'
import { type Frame, MAX_SUBSCRIPTION } from '../wire/edge/index.ts'

interface Subscription {
  /** As it is sent in the next session: goes on behind what has come, unless the edge's stored offset says where. */
  frame: Frame<'subscribe'>
  /** In this session. */
  isConfirmed: boolean
  /** The edge ended it. It keeps its number until the program is through with what came, and says so. */
  isOver: boolean
}

export class Subscriptions {
  readonly #byNumber = new Map<number, Subscription>()
  /** Numbers of which something may still be on its way, with the ping that went behind their end: its answer comes after all of it. */
  readonly #leaving = new Map<number, number>()

  /** @returns the frame that asks for it. @throws {EdgeError} EDGE_LIMIT_REACHED. */
  add(wanted: Omit<Frame<'subscribe'>, 'type' | 'subscription'>, limit: number): Frame<'subscribe'> {
    const frame: Frame<'subscribe'> = { type: 'subscribe', subscription: this.#freeNumber(limit), ...wanted }
    this.#byNumber.set(frame.subscription, { frame, isConfirmed: false, isOver: false })
    return frame
  }

  /** The program is through with it. @returns what it was at last, or null when there is none. */
  remove(number: number): { readonly isOver: boolean } | null {
    const found = this.#byNumber.get(number)
    this.#byNumber.delete(number)
    return found ?? null
  }

  /** Until that ping is answered, nothing that comes under the number is another's. */
  reserve(number: number, ping: number): void {
    this.#leaving.set(number, ping)
  }

  answered(ping: number): void {
    for (const [number, behind] of this.#leaving) if (behind === ping) this.#leaving.delete(number)
  }

  /** A session begins. @returns what asks for those that go on. */
  resume(): Frame<'subscribe'>[] {
    this.#leaving.clear()
    const going = [...this.#byNumber.values()].filter(({ isOver }) => !isOver)
    for (const one of going) one.isConfirmed = false
    return going.map(({ frame }) => frame)
  }

  confirm({ subscription, next, incarnation }: Frame<'subscribed'>): void {
    const found = this.#byNumber.get(subscription)
    if (found === undefined) return
    found.isConfirmed = true
    const { frame } = found
    found.frame = goingOnAt(next, incarnation === undefined ? frame : ofLog(incarnation, frame), 0)
  }

  /** Whether it was asked for and not confirmed. */
  isUnanswered(number: number): boolean {
    return this.#byNumber.get(number)?.isConfirmed === false
  }

  /** @returns whether somebody waits for it. */
  takes(message: Frame<'message'>): boolean {
    const found = this.#byNumber.get(message.subscription)
    if (found === undefined) return false
    found.frame = goingOnAt(message.offset + 1n, found.frame, 1)
    return true
  }

  /** By the edge. */
  ended(number: number): void {
    const found = this.#byNumber.get(number)
    if (found !== undefined) found.isOver = true
  }

  #freeNumber(limit: number): number {
    const most = Math.min(limit, MAX_SUBSCRIPTION + 1)
    if (this.#byNumber.size >= most) {
      throw new EdgeError('EDGE_LIMIT_REACHED', `subscriptions: expected at most ${most}`)
    }
    for (let number = 0; number <= MAX_SUBSCRIPTION; number++) {
      if (!this.#byNumber.has(number) && !this.#leaving.has(number)) return number
    }
    const text = `subscriptions: the edge has not answered the end of ${this.#leaving.size} yet, expected a number that is free`
    throw new EdgeError('EDGE_LIMIT_REACHED', text)
  }
}

/** @param count of messages that have come: a poll asks for so many fewer. */
function goingOnAt(next: bigint, frame: Frame<'subscribe'>, count: number): Frame<'subscribe'> {
  const { from, options = {} } = frame
  const { maxMessages } = options
  return {
    ...frame,
    from: from === 'stored' ? from : next,
    options: maxMessages === undefined ? options : { ...options, maxMessages: Math.max(0, maxMessages - count) },
  }
}

/** Offsets are numbers of one log: where the topic was made anew meanwhile, the edge begins at its oldest message. */
function ofLog(incarnation: number, frame: Frame<'subscribe'>): Frame<'subscribe'> {
  return { ...frame, options: { ...frame.options, incarnation } }
}
