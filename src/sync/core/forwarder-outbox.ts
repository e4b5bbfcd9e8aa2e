/** What a forwarder wants done, in order, and which of its questions still waits for an answer. Pure. */
import type { Cursor } from '../ports.ts'
import type { Effect, Question, Report } from './forwarder-protocol.ts'

export class ForwarderOutbox {
  #effects: Effect[] = []
  #ticket = 0

  /** @returns what was put in since the last time. */
  take(): Effect[] {
    const effects = this.#effects
    this.#effects = []
    return effects
  }

  /** False for a question that was given up since: its answer would find nobody. */
  awaits(ticket: number): boolean {
    return ticket === this.#ticket
  }

  /** The question before it is given up. */
  ask(question: Question): void {
    this.giveUp()
    this.#effects.push({ ...question, ticket: this.#ticket })
  }

  giveUp(): void {
    this.#ticket += 1
  }

  topicMissing(): void {
    this.#effects.push({ type: 'topic-missing' })
  }

  commit(cursor: Cursor): void {
    this.#effects.push({ type: 'commit-cursor', cursor })
  }

  wakeAt(atUs: number): void {
    this.#effects.push({ type: 'wake', atUs })
  }

  report(report: Report): void {
    this.#effects.push({ type: 'report', report })
  }
}
