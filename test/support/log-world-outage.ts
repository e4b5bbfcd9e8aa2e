/** Outages in `log-world.ts`: the device gives nothing for a while, as while its bus is reset; what is written stays in the cache. */
import type { LogEngine } from '../../src/log/engine.ts'
import type { WorldTime } from './log-world-time.ts'
import type { SeededRandom } from './seeded-random.ts'
import type { SimDisk } from './sim-disk.ts'

/** Part of the steps in which one ends. */
const END_RATE = 0.1

export interface OutageParts {
  readonly random: SeededRandom
  readonly disk: SimDisk
  readonly time: WorldTime
  readonly note: (text: string) => void
}

export class Outages {
  readonly #parts: OutageParts
  readonly #rate: number
  count = 0

  /** @param rate part of the steps in which one begins. */
  constructor(parts: OutageParts, rate: number) {
    this.#parts = parts
    this.#rate = rate
  }

  step({ segmentFiles }: LogEngine): void {
    const { random, disk } = this.#parts
    if (this.#rate === 0 || !random.chance(disk.isRefusingReads ? END_RATE : this.#rate)) return
    if (disk.isRefusingReads) this.end()
    // Who was refused before has not come back: to them it would be one and the same outage.
    else if (segmentFiles.refusals.isEmpty) this.#begin()
  }

  #begin(): void {
    const { disk, time, note } = this.#parts
    note('the device gives nothing')
    disk.isRefusingReads = true
    // Never so long that what it refuses counts as damaged.
    time.areTimersHeld = true
    this.count++
  }

  end(): void {
    const { disk, time, note } = this.#parts
    if (!disk.isRefusingReads) return
    note('the device is back')
    disk.isRefusingReads = false
    time.areTimersHeld = false
  }
}
