/** A transport's events before anyone is there to take them: while the generation is found out. */
import { concatBytes } from '../../byte-concat.ts'
import type { EdgeError } from '../../errors.ts'
import type { TransportEvents } from '../transport/transport.ts'

/** Passes a transport's events on to whoever listens by now, and keeps what comes before that. */
export class Relay implements TransportEvents {
  #target: TransportEvents | null = null
  #watcher: { data(bytesView: Uint8Array): void; closed(error: EdgeError | null): void } | null = null
  #held = new Uint8Array(0)
  #end: { error: EdgeError | null } | null = null

  watch(data: (bytesView: Uint8Array) => void, closed: (error: EdgeError | null) => void): void {
    this.#watcher = { data, closed }
    if (this.#held.length > 0) data(this.#held)
    if (this.#end) closed(this.#end.error)
  }

  /** Drops the first bytes of what is kept: the answer to the probe. */
  skip(sizeBytes: number): void {
    this.#held = this.#held.slice(sizeBytes)
  }

  connect(target: TransportEvents): void {
    this.#target = target
    const held = this.#held
    this.#held = new Uint8Array(0)
    if (held.length > 0) target.data(held)
    if (this.#end) target.closed(this.#end.error)
  }

  data(bytesView: Uint8Array): void {
    if (this.#target) {
      this.#target.data(bytesView)
      return
    }
    const joined = concatBytes([this.#held, bytesView])
    this.#held = joined
    this.#watcher?.data(joined)
  }

  drained(): void {
    this.#target?.drained()
  }

  closed(error: EdgeError | null): void {
    this.#end = { error }
    this.#watcher?.closed(error)
    this.#target?.closed(error)
  }
}
