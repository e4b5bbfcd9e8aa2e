/**
 * The network paths of a connection: which one is in use, migration to another, its validation, and the way back when that
 * fails (RFC 9000 section 9). Pure.
 *
 * A server follows its client to the address from which the newest packet came that does more than probe. Until the client
 * answers a challenge there, the path is held to the amplification limit; if it never does, the last proven path is taken up
 * again. Bounds: paths that are remembered, answers to challenges that wait, and packets of both kinds under way.
 */
import type { PeerAddress } from './api.ts'
import { CHALLENGE_SIZE, Path } from './path.ts'

/** The path in use, the proven one before it, and some that only probed. */
export const PATHS_MAX = 4
/** Answers to PATH_CHALLENGE frames that wait to be sent; more are dropped, and the peer asks again. */
export const PATH_RESPONSES_MAX = 4
/**
 * Packets of both kinds that may be under way. They do not wait for the congestion window, and a peer can provoke them with
 * small packets from one address after another: one that acknowledges nothing must not make us remember one for each.
 */
export const PATH_FRAMES_MAX = 16
/** A challenge that gets no answer for so many probe timeouts has failed. */
const VALIDATION_TIMEOUTS = 3

/** A PATH_CHALLENGE or PATH_RESPONSE frame, to be sent to that path and no other. */
export interface PathFrame {
  readonly path: Path
  readonly dataBytes: Uint8Array
}

export class Paths {
  readonly #random: (size: number) => Uint8Array
  /** By address key, the one heard of last at the end. */
  readonly #paths = new Map<string, Path>()
  #current: Path
  /** Proven, and used before the current one: where to go back to. */
  #previous: Path | undefined
  #validationEndMs = Number.POSITIVE_INFINITY
  readonly #challengesDue = new Set<Path>()
  readonly #responses: PathFrame[] = []
  #underWayCount = 0
  migrationCount = 0

  constructor(first: PeerAddress, isValidated: boolean, random: (size: number) => Uint8Array) {
    this.#random = random
    this.#current = new Path(first, isValidated)
    this.#paths.set(first.key, this.#current)
  }

  get current(): Path {
    return this.#current
  }

  get count(): number {
    return this.#paths.size
  }

  /** When validation of the current path has failed; `Infinity` when there is none. */
  get deadlineMs(): number {
    return this.#validationEndMs
  }

  /** @returns the path that a datagram came by: a new one is not kept before something on it authenticates. */
  from(peer: PeerAddress): Path {
    return this.#paths.get(peer.key) ?? new Path(peer, false)
  }

  /** A packet that came by the path authenticated. */
  keep(path: Path): void {
    if (path === this.#current) return
    this.#paths.delete(path.peer.key)
    this.#paths.set(path.peer.key, path)
    this.#forgetOldest()
  }

  /**
   * The peer is at another address now.
   *
   * @param probeTimeoutMs of the old path. @returns whether its host changed too, not only the port as after a NAT's rebinding.
   */
  migrate(to: Path, nowMs: number, probeTimeoutMs: number): boolean {
    const from = this.#current
    this.migrationCount++
    if (from.isValidated) this.#previous = from
    this.#current = to
    this.#validationEndMs = Number.POSITIVE_INFINITY
    if (!to.isValidated) {
      this.#challenge(to)
      this.#validationEndMs = nowMs + VALIDATION_TIMEOUTS * probeTimeoutMs
    }
    // Somebody may forward the peer's packets to look like a migration: the old path is asked too, and the peer's next
    // packet from there takes the connection back.
    if (from.isValidated) this.#challenge(from)
    return to.peer.address !== from.peer.address
  }

  /** A PATH_RESPONSE arrived, by whatever path. */
  answered(dataView: Uint8Array): void {
    for (const path of this.#paths.values()) {
      if (!path.answered(dataView)) continue
      this.#challengesDue.delete(path)
      if (path === this.#current) this.#validationEndMs = Number.POSITIVE_INFINITY
    }
  }

  /** A PATH_CHALLENGE arrived: it is answered where it came from. */
  asked(path: Path, dataView: Uint8Array): void {
    if (this.#responses.length >= PATH_RESPONSES_MAX) return
    this.#responses.push({ path, dataBytes: new Uint8Array(dataView) })
  }

  /**
   * Validation failed: goes back to the path before.
   *
   * @returns false when there is none to go back to.
   */
  timeout(nowMs: number): boolean {
    if (nowMs < this.#validationEndMs) return true
    this.#validationEndMs = Number.POSITIVE_INFINITY
    this.#current.giveUpChallenge()
    this.#challengesDue.delete(this.#current)
    if (this.#previous === undefined) return false
    this.#current = this.#previous
    this.#previous = undefined
    return true
  }

  /** @returns an answer to be sent now. */
  takeResponse(): PathFrame | undefined {
    return this.#underWayCount < PATH_FRAMES_MAX ? this.#responses.shift() : undefined
  }

  /** @returns a challenge to be sent now. `challengeLost` brings it back. */
  takeChallenge(): PathFrame | undefined {
    if (this.#underWayCount >= PATH_FRAMES_MAX) return undefined
    for (const path of this.#challengesDue) {
      if (path.isBlocked) continue
      this.#challengesDue.delete(path)
      if (path.challengeBytes !== undefined) return { path, dataBytes: path.challengeBytes }
    }
    return undefined
  }

  /** A frame that was taken is in a packet: `arrivedOrLost` follows once. */
  sent(): void {
    this.#underWayCount++
  }

  arrivedOrLost(): void {
    this.#underWayCount--
  }

  /** Only the path in use is worth another try. */
  challengeLost(path: Path): void {
    if (path === this.#current && path.challengeBytes !== undefined) this.#challengesDue.add(path)
  }

  #challenge(path: Path): void {
    path.challenge(this.#random(CHALLENGE_SIZE))
    this.#challengesDue.add(path)
  }

  #forgetOldest(): void {
    for (const [key, path] of this.#paths) {
      if (this.#paths.size <= PATHS_MAX) return
      if (path === this.#current || path === this.#previous) continue
      this.#paths.delete(key)
      this.#challengesDue.delete(path)
    }
  }
}
