/** Notes about the messages of a spool that are still to be written. Pure. */

/** So many of the oldest messages are done with; or the one behind so many of the oldest was given up. */
export interface Note {
  readonly kind: 'done' | 'given-up'
  readonly count: number
}

/** In their order; what repeats is kept once, so that a disk that is full for days does not fill memory. */
export class NoteLedger {
  #runs: { note: Note; times: number }[] = []

  add(note: Note): void {
    const last = this.#runs.at(-1)
    if (last?.note.kind !== note.kind) this.#runs.push({ note, times: 1 })
    else if (note.kind === 'done') last.note = { kind: 'done', count: last.note.count + note.count }
    else if (last.note.count === note.count) last.times++
    else this.#runs.push({ note, times: 1 })
  }

  notes(): Note[] {
    return this.#runs.flatMap(({ note, times }) => Array.from({ length: times }, () => note))
  }

  clear(): void {
    this.#runs = []
  }
}
