/**
 * What each producer has got rid of: one number per (device, epoch, lane). Rises with the promise of the batches that carry
 * the tags; what is written as a checkpoint, before the journal file that holds them is recycled, rises with their sync. So
 * after a crash a number is there exactly when the reading is.
 *
 * Bounds: `maxDevices` names, the `MAX_EPOCHS` newest epochs of each. What expired or was pushed out is told to the
 * checkpoint too, where it knows of it: devices that number anew with each session come and go between two checkpoints.
 */
import { EdgeError } from '../../errors.ts'
import type { ProducerLane, ProducerTag } from '../api.ts'
import type { ProducerSequence } from '../ports.ts'
import { later } from './offset.ts'

export const MAX_EPOCHS = 4

interface Lane {
  have: number
  seenAtUs: bigint
  /** As far as the readings are synced. */
  durable: number
  /** The checkpoint has a row of it. */
  isStored: boolean
}

export class ProducerSequences {
  readonly #maxDevices: number
  readonly #numbers = new Map<string, number>()
  /** Of those that have a name. What comes of others is of devices that were forgotten meanwhile, or lost their names. */
  readonly #named = new Set<number>()
  /** Device → epoch → lane. */
  readonly #devices = new Map<number, Map<number, Map<number, Lane>>>()
  readonly #changed = new Map<string, ProducerSequence>()
  #removed: ProducerSequence[] = []
  #nextNumber = 1

  constructor(maxDevices: number) {
    this.#maxDevices = maxDevices
  }

  /** Puts back a name that was remembered. */
  addDevice(device: number, name: string): void {
    this.#numbers.set(name, device)
    this.#named.add(device)
    this.#nextNumber = Math.max(this.#nextNumber, device + 1)
  }

  device(name: string): number | undefined {
    return this.#numbers.get(name)
  }

  /** @throws EDGE_LIMIT_REACHED. */
  newDevice(name: string): number {
    if (this.#numbers.size >= this.#maxDevices) {
      const text = `no more than ${this.#maxDevices} device names are remembered: \`iggy-edge device forget\` makes room, or a higher log.max_publishers`
      throw new EdgeError('EDGE_LIMIT_REACHED', text, { details: { limit: this.#maxDevices } })
    }
    const device = this.#nextNumber++
    this.#numbers.set(name, device)
    this.#named.add(device)
    return device
  }

  all(): { name: string; lastSeenUs: bigint | null }[] {
    return [...this.#numbers].map(([name, device]) => {
      const epochs = this.#devices.get(device)
      return { name, lastSeenUs: epochs === undefined ? null : [...epochs.values()].map(lastSeen).reduce(later, 0n) }
    })
  }

  /** The store has forgotten it. Its number is given to nobody else in this process: what is on its way carries it. */
  forget(name: string): void {
    const device = this.#numbers.get(name)
    if (device === undefined) return
    this.#numbers.delete(name)
    this.#named.delete(device)
    this.#devices.delete(device)
    for (const [key, row] of this.#changed) if (row.device === device) this.#changed.delete(key)
    this.#removed = this.#removed.filter((row) => row.device !== device)
  }

  have(device: number, epoch: number, lane: number): number | undefined {
    return this.#devices.get(device)?.get(epoch)?.get(lane)?.have
  }

  lanes(device: number, epoch: number): ProducerLane[] {
    const lanes = this.#devices.get(device)?.get(epoch) ?? new Map<number, Lane>()
    return [...lanes]
      .map(([lane, { have, durable }]) => ({ lane, have, durable: Math.max(0, durable) }))
      .sort((a, b) => a.lane - b.lane)
  }

  /** Loads a row of the checkpoint. */
  load(row: ProducerSequence): void {
    if (this.#isNamed(row.device)) this.#raise(row, row.have, row.seenAtUs, true).durable = row.have
    else this.#removed.push(row)
  }

  /** The promise of a batch with that tag holds. */
  settled(tag: ProducerTag, seenAtUs: bigint): void {
    if (this.#isNamed(tag.device)) this.#raise(tag, lastOf(tag), this.#seenAt(tag, seenAtUs))
  }

  /** A batch with that tag is on stable storage. */
  synced(tag: ProducerTag, seenAtUs: bigint): void {
    if (!this.#isNamed(tag.device)) return
    const have = lastOf(tag)
    const lane = this.#raise(tag, have, this.#seenAt(tag, seenAtUs))
    if (have <= lane.durable) return
    lane.durable = have
    const { device, epoch, lane: number } = tag
    const row = { device, epoch, lane: number, have, seenAtUs: lane.seenAtUs }
    this.#changed.set(`${device}/${epoch}/${number}`, row)
  }

  /** What the checkpoint lacks, once. */
  takeChanges(): { changed: readonly ProducerSequence[]; removed: readonly ProducerSequence[] } {
    const changes = { changed: [...this.#changed.values()], removed: this.#removed }
    this.#changed.clear()
    this.#removed = []
    return changes
  }

  /** The checkpoint has these rows now. */
  stored(rows: readonly ProducerSequence[]): void {
    for (const row of rows) {
      const lane = this.#devices.get(row.device)?.get(row.epoch)?.get(row.lane)
      if (lane !== undefined) lane.isStored = true
      // Its epoch went while it was written.
      else this.#removed.push(row)
    }
  }

  /** The checkpoint could not be written. */
  putBack(changes: { changed: readonly ProducerSequence[]; removed: readonly ProducerSequence[] }): void {
    for (const row of changes.changed) {
      const key = `${row.device}/${row.epoch}/${row.lane}`
      if (!this.#changed.has(key)) this.#changed.set(key, row)
    }
    this.#removed = [...changes.removed, ...this.#removed]
  }

  /** Also one whose name was lost keeps its number from others: what it has got rid of is not what they have. */
  #isNamed(device: number): boolean {
    this.#nextNumber = Math.max(this.#nextNumber, device + 1)
    return this.#named.has(device)
  }

  #raise(at: { device: number; epoch: number; lane: number }, have: number, seenAtUs: bigint, isStored = false): Lane {
    const epochs = this.#devices.get(at.device) ?? new Map<number, Map<number, Lane>>()
    this.#devices.set(at.device, epochs)
    const lanes = epochs.get(at.epoch) ?? new Map<number, Lane>()
    epochs.set(at.epoch, lanes)
    const lane = lanes.get(at.lane) ?? { have: -1, seenAtUs, durable: -1, isStored }
    lanes.set(at.lane, lane)
    if (have > lane.have) lane.have = have
    lane.seenAtUs = later(lane.seenAtUs, seenAtUs)
    if (epochs.size > MAX_EPOCHS) this.#dropOldestEpoch(at.device, epochs)
    return lane
  }

  /** An epoch that begins is the newest, also by a clock that stands before the times of the others: else it would go at once. */
  #seenAt({ device, epoch }: ProducerTag, nowUs: bigint): bigint {
    const epochs = this.#devices.get(device)
    if (epochs === undefined || epochs.has(epoch)) return nowUs
    return [...epochs.values()].map(lastSeen).reduce(later, nowUs)
  }

  #dropOldestEpoch(device: number, epochs: Map<number, Map<number, Lane>>): void {
    const [epoch, lanes] = [...epochs].reduce((oldest, each) =>
      lastSeen(each[1]) < lastSeen(oldest[1]) ? each : oldest,
    )
    epochs.delete(epoch)
    for (const [lane, { have, seenAtUs, isStored }] of lanes) {
      this.#changed.delete(`${device}/${epoch}/${lane}`)
      if (isStored) this.#removed.push({ device, epoch, lane, have, seenAtUs })
    }
  }
}

const lastSeen = (lanes: ReadonlyMap<number, Lane>): bigint =>
  [...lanes.values()].reduce((newest, { seenAtUs }) => later(newest, seenAtUs), 0n)

const lastOf = ({ firstSequence, sequenceCount }: ProducerTag): number => firstSequence + sequenceCount - 1
