/** What forwarding asks of a central server, whichever protocol reaches it. Types only. */
import type { EdgeError } from '../../errors.ts'
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import type { TopicName } from '../core/route.ts'
import type { TailPage, TailRequest } from '../core/tail.ts'
import type { Turns } from './turns.ts'

export interface Upstream {
  /** How it is spoken to, for pages and logs. */
  readonly protocol: 'classic' | 'vsr' | 'http'
  readonly peer: string
  /** Settles when the link is over; every request that waits fails with the same error. */
  readonly closed: Promise<EdgeError>
  /**
   * Creates stream, topic and partitions up to `partitionCount` where they are missing.
   *
   * @returns the topic's incarnation: another one for a topic that was deleted and made again under its name.
   */
  ensureTopic(topic: TopicName, partitionCount: number): Promise<string>
  /** Looks which incarnation of the topic is there now; null for none. One that is gone is made sure of anew when asked. */
  findTopic(topic: TopicName): Promise<string | null>
  /** Nobody sends to the topic any more: nothing is kept of it. */
  forgetTopic(topic: TopicName): void
  pollTail(topic: TopicName, partitionId: number, request: TailRequest): Promise<TailPage>
  /**
   * Sends one batch, which is stored whole or not at all; ids come from its offsets and seed. Its bytes are the callee's.
   *
   * @returns offset of its first message there, or null when the server does not tell.
   */
  send(topic: TopicName, partitionId: number, batch: StoredBatch): Promise<bigint | null>
  /** Gives up at once: what is still on its way from us shall not arrive. */
  abort(error: EdgeError): void
}

/**
 * @param turns what the link asks by itself, such as pings, takes a turn as well, once it stands.
 * @throws {EdgeError} whatever kept the link from coming about.
 */
export type OpenUpstream = (signal: AbortSignal, turns: Turns) => Promise<Upstream>
