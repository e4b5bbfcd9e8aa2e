/** Time in `log-world.ts`: what a process would do later happens when the world says so, in an order that chance chooses. */
import type { Clock } from '../../src/clock.ts'
import { FlashUse } from '../../src/log/flash-use.ts'
import type { Scheduler } from '../../src/log/scheduler.ts'
import { drained } from './log-world-parts.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { EventSink } from './sim-disk.ts'

/** Rounds after which something that has not ended counts as stuck. */
export const PATIENCE = 4000

/** One life of the process: its turns, timers and what the disk still owes it. */
class Process implements EventSink {
  readonly turns: (() => void)[] = []
  readonly timers: { atUs: number; task: () => void }[] = []
  readonly events: (() => void)[] = []

  later(_kind: 'sync' | 'read', task: () => void): void {
    this.events.push(task)
  }
}

export class WorldTime {
  readonly #random: SeededRandom
  #process = new Process()
  #nowUs = 1_000_000
  /** No timer runs out. */
  areTimersHeld = false
  /** How often a disk that is waited for lets timers run out first. */
  stallRate = 0
  /** The wall clock is set now and then, forth and back. */
  wallStepUs = 10_000_000

  constructor(random: SeededRandom) {
    this.#random = random
  }

  /** What waits for the process that lives now. */
  get process(): EventSink {
    return this.#process
  }

  get hasEvents(): boolean {
    return this.#process.events.length > 0
  }

  get clock(): Clock {
    return { wallUs: () => BigInt(this.#nowUs + this.wallStepUs), monotonicUs: () => this.#nowUs }
  }

  /** Without a budget. */
  flash(): FlashUse {
    return new FlashUse(0, this.clock)
  }

  /** For the process that lives now: its tasks go with it. */
  scheduler(): Scheduler {
    const process = this.#process
    return {
      nextTurn: (task) => void process.turns.push(task),
      after: (milliseconds, task) => {
        const timer = { atUs: this.#nowUs + milliseconds * 1000, task }
        process.timers.push(timer)
        return () => {
          const at = process.timers.indexOf(timer)
          if (at >= 0) process.timers.splice(at, 1)
        }
      },
    }
  }

  /** The process is gone, with all it wanted to do. */
  die(): void {
    this.#process = new Process()
  }

  turn(): void {
    const tasks = this.#process.turns.splice(0)
    this.#nowUs += 50
    for (const task of tasks) task()
  }

  /** One of the things that the disk owes, whichever. */
  event(): void {
    const { events } = this.#process
    if (events.length === 0) return
    const [task] = events.splice(this.#random.below(events.length), 1)
    this.#nowUs += 300
    task?.()
  }

  /** The next timer runs out. */
  timer(): void {
    if (this.areTimersHeld) return
    const { timers } = this.#process
    timers.sort((a, b) => a.atUs - b.atUs)
    const next = timers.shift()
    if (next === undefined) return
    this.#nowUs = Math.max(this.#nowUs, next.atUs)
    next.task()
  }

  /** Lets the world turn for a while. */
  async passed(rounds: number): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      this.turn()
      this.event()
      await drained()
    }
  }

  /** Lets the world turn until a promise has settled. @throws what it rejects with; Error J14 when it never settles. */
  async finished<T>(promise: Promise<T>): Promise<T> {
    let outcome: { value: T } | { error: unknown } | undefined
    promise.then(
      (value) => {
        outcome = { value }
      },
      (error: unknown) => {
        outcome = { error }
      },
    )
    for (let round = 0; round < PATIENCE; round++) {
      await drained()
      if (outcome !== undefined) break
      const { timers, turns } = this.#process
      const isStalled = timers.length > 0 && this.#random.chance(this.stallRate)
      if (this.hasEvents && !isStalled) this.event()
      else if (turns.length > 0) this.turn()
      else this.timer()
    }
    if (outcome === undefined) throw new Error('J14: something waits for ever')
    if ('error' in outcome) throw outcome.error
    return outcome.value
  }
}
