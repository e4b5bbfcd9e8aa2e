/** Partitions whose ends moved in this write or sync: their listeners are called once, when all of it is told. */
import type { LogPartition } from './partition.ts'

export class MovedPartitions {
  /** Not a set: emptied with each write, it would be made anew each time. */
  #waiting: LogPartition[] = []

  add(partition: LogPartition): void {
    if (partition.hasMoved) return
    partition.hasMoved = true
    this.#waiting.push(partition)
  }

  notify(): void {
    const moved = this.#waiting
    this.#waiting = []
    for (const partition of moved) {
      partition.hasMoved = false
      partition.notify()
    }
  }
}
