/**
 * Devices that number what they send, beside the engine's producer table: what was promised is known for ever, and a number
 * is known exactly when its reading is there.
 */
import type { ProducerTag } from '../../src/log/api.ts'
import type { ProducerSequence, ProducerStore } from '../../src/log/ports.ts'
import type { Producers } from '../../src/log/producers.ts'
import { check, type Given, isDamaged, type Known } from './log-world-parts.ts'
import type { SeededRandom } from './seeded-random.ts'

const DEVICES = ['pump', 'meter']
const LANES = 2
const EPOCH = 7

/** A run of numbers on its way, or in the log. */
interface Sent {
  readonly end: number
  /** Undefined: disposed of without a reading. */
  readonly reading?: { readonly known: Known; readonly given: Given }
  /** `doubtful`: refused, and may be there all the same. */
  promise: 'none' | 'doubtful' | 'written' | 'durable'
}

interface Lane {
  readonly device: string
  readonly lane: number
  next: number
  sent: Sent[]
  /** A run was refused: the device waits for the next session to learn what is there. */
  isHeld: boolean
}

/** Tables that are durable as soon as they are written. */
export class FakeProducerStore implements ProducerStore {
  readonly #devices: { device: number; name: string }[] = []
  readonly #rows = new Map<string, ProducerSequence>()

  loadDevices(): readonly { device: number; name: string }[] {
    return this.#devices
  }

  addDevice(device: number, name: string): void {
    this.#devices.push({ device, name })
  }

  removeDevice(device: number): void {
    this.#devices.splice(0, this.#devices.length, ...this.#devices.filter((each) => each.device !== device))
  }

  loadSequences(): readonly ProducerSequence[] {
    return [...this.#rows.values()]
  }

  saveSequences(changed: readonly ProducerSequence[], removed: readonly ProducerSequence[]): void {
    for (const row of removed) this.#rows.delete(nameOf(row))
    for (const row of changed) this.#rows.set(nameOf(row), row)
  }
}

export class ProducerModel {
  readonly store = new FakeProducerStore()
  /** Damage in the journal may take numbers with it: their readings are sent again. */
  isJournalDamaged = false
  readonly #random: SeededRandom
  readonly #lanes: Lane[]

  constructor(random: SeededRandom) {
    this.#random = random
    this.#lanes = DEVICES.flatMap((device) =>
      Array.from({ length: LANES }, (_, lane) => ({ device, lane, next: 1, sent: [], isHeld: false })),
    )
  }

  /** Numbers for the next `count` readings of some lane; undefined when that one is held. */
  tagFor(producers: Producers, count: number): { tag: ProducerTag; lane: Lane } | undefined {
    const lane = this.#lanes[this.#random.below(this.#lanes.length)]
    if (lane === undefined || lane.isHeld) return undefined
    const device = producers.numberOf(lane.device)
    const tag = { device, epoch: EPOCH, lane: lane.lane, firstSequence: lane.next, sequenceCount: count }
    return { tag, lane }
  }

  /** The log took it. @returns what to call with the outcome. */
  sent(lane: Lane, count: number, reading?: Sent['reading']): (isKept: boolean, isDurable: boolean) => void {
    lane.next += count
    const sent: Sent = { end: lane.next, promise: 'none', ...(reading === undefined ? {} : { reading }) }
    lane.sent.push(sent)
    return (isKept, isDurable) => {
      sent.promise = isKept ? (isDurable ? 'durable' : 'written') : 'doubtful'
      if (!isKept) lane.isHeld = true
    }
  }

  /** After an open, when the partitions were looked at. @param isUnsafe what was only written may be gone. */
  checkOpened(producers: Producers, isUnsafe: boolean): void {
    for (const lane of this.#lanes) {
      const have = producers.have(producers.numberOf(lane.device), EPOCH, lane.lane) ?? 0
      const place = `${lane.device}/${lane.lane}`
      check(have < lane.next, 'J15', `${place}: ${have} is known, ${lane.next} was never sent`)
      for (const sent of lane.sent) this.#checkSent(place, sent, have, isUnsafe)
      lane.next = have + 1
      lane.sent = []
      lane.isHeld = false
    }
  }

  #checkSent(place: string, { end, promise, reading }: Sent, have: number, isUnsafe: boolean): void {
    const last = end - 1
    const isKnown = last <= have
    const isPromised = promise === 'durable' || (promise === 'written' && !isUnsafe)
    check(isKnown || !isPromised || this.isJournalDamaged, 'J15', `${place}: ${last} is forgotten`)
    if (reading === undefined || reading.known.isDeleted) return
    const { known, given } = reading
    // Of what was purged nobody can say whether it had been there.
    if (given.baseOffset < known.droppableTo) return
    // Those whose offsets were given again are not among them any more.
    const isThere = known.given.includes(given)
    const isExcused = isDamaged(known, given.baseOffset)
    check(
      isThere || !isKnown || isExcused,
      'J15',
      `${place}: ${last} is known, its reading at ${given.baseOffset} is gone`,
    )
    const isMissed = isThere && !isKnown && !isExcused && !this.isJournalDamaged
    check(!isMissed, 'J15', `${place}: the reading at ${given.baseOffset} is there, ${last} is not known`)
  }
}

const nameOf = ({ device, epoch, lane }: ProducerSequence): string => `${device}/${epoch}/${lane}`
