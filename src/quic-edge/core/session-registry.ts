/**
 * What is known of the living sessions of one listener, and what is due for them: pings, idle ends, streams that wait too
 * long. Pure.
 */
import type { SessionLimits } from '../ports.ts'
import { SessionFlow } from './stream-flow.ts'

export type DueAction =
  | { readonly type: 'ping'; readonly sessionId: number }
  | { readonly type: 'close-idle'; readonly sessionId: number }
  | { readonly type: 'reset-stream'; readonly sessionId: number; readonly streamId: number }

interface Entry {
  readonly flow: SessionFlow
  openStreamCount: number
  hasHadStream: boolean
  /** When it last had an open stream or a datagram. */
  activeMs: number
  pingedMs: number
}

export class SessionRegistry {
  readonly #limits: SessionLimits
  readonly #entries = new Map<number, Entry>()

  constructor(limits: SessionLimits) {
    this.#limits = limits
  }

  get count(): number {
    return this.#entries.size
  }

  add(sessionId: number, nowMs: number): void {
    const flow = new SessionFlow(this.#limits.maxUnreadBytesPerSession)
    this.#entries.set(sessionId, {
      flow,
      openStreamCount: 0,
      hasHadStream: false,
      activeMs: nowMs,
      pingedMs: nowMs,
    })
  }

  remove(sessionId: number): void {
    this.#entries.delete(sessionId)
  }

  /** @returns whether a peer's stream is within the limit; if so it counts. */
  streamOpened(sessionId: number, nowMs: number): boolean {
    const entry = this.#entries.get(sessionId)
    if (entry === undefined || entry.openStreamCount >= this.#limits.maxStreamsPerSession) return false
    entry.openStreamCount++
    entry.hasHadStream = true
    entry.activeMs = nowMs
    return true
  }

  /** @returns other streams of the session that may be read again. */
  streamClosed(sessionId: number, streamId: number, nowMs: number): number[] {
    const entry = this.#entries.get(sessionId)
    if (entry === undefined) return []
    entry.openStreamCount--
    entry.activeMs = nowMs
    return entry.flow.forget(streamId)
  }

  openStreamCount(sessionId: number): number {
    return this.#entries.get(sessionId)?.openStreamCount ?? 0
  }

  datagramReceived(sessionId: number, nowMs: number): void {
    const entry = this.#entries.get(sessionId)
    if (entry !== undefined) entry.activeMs = nowMs
  }

  /** @returns `read-on`, `pause`, or `reset` when too many streams wait already. */
  received(sessionId: number, streamId: number, sizeBytes: number, nowMs: number): 'read-on' | 'pause' | 'reset' {
    const entry = this.#entries.get(sessionId)
    if (entry === undefined) return 'reset'
    if (entry.flow.received(streamId, sizeBytes, nowMs)) return 'read-on'
    return this.#pausedCount() > this.#limits.maxPausedStreams ? 'reset' : 'pause'
  }

  /** @returns streams of the session that may be read again. */
  granted(sessionId: number, streamId: number, sizeBytes: number): number[] {
    return this.#entries.get(sessionId)?.flow.granted(streamId, sizeBytes) ?? []
  }

  /** Bytes of a session that nobody has worked off, for tests and the operator. */
  unreadBytes(sessionId: number): number {
    return this.#entries.get(sessionId)?.flow.unreadBytes ?? 0
  }

  /** To be asked about once a second. */
  due(nowMs: number): DueAction[] {
    const actions: DueAction[] = []
    for (const [sessionId, entry] of this.#entries) {
      if (entry.openStreamCount === 0 && nowMs - entry.activeMs >= this.#patienceMs(entry)) {
        actions.push({ type: 'close-idle', sessionId })
        continue
      }
      for (const streamId of entry.flow.pausedBefore(nowMs - this.#limits.pauseTimeoutMs)) {
        actions.push({ type: 'reset-stream', sessionId, streamId })
      }
      if (nowMs - entry.pingedMs >= this.#limits.pingIntervalMs) {
        entry.pingedMs = nowMs
        actions.push({ type: 'ping', sessionId })
      }
    }
    return actions
  }

  /** A session that never opened a stream has the handshake's time, one that did the idle time. */
  #patienceMs(entry: Entry): number {
    return entry.hasHadStream ? this.#limits.idleTimeoutMs : this.#limits.handshakeTimeoutMs
  }

  #pausedCount(): number {
    let count = 0
    for (const entry of this.#entries.values()) count += entry.flow.pausedCount
    return count
  }
}
