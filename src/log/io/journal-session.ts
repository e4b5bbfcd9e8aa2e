/**
 * The chain that groups form: sequence numbers, sessions, and what each group says about those before it. A session is one
 * open of the log, or what follows a failed sync; docs/formats/journal.md says what recovery makes of it.
 */
import type { Checksum } from '../core/checksum.ts'
import { GROUP_FLAG, seedOf } from '../core/journal-format.ts'
import type { GroupBuilder } from './group-buffer.ts'
import type { JournalFile } from './journal-file.ts'
import type { GroupIdentity, JournalStart } from './journal-options.ts'
import { GroupEncoder } from './sealed-groups.ts'

export interface SessionOptions {
  readonly start: Pick<JournalStart, 'ordinal' | 'bootHash' | 'last'>
  readonly checksum: Checksum
  readonly randomU64: () => bigint
}

/** A group ready to be written. */
export interface SealedGroup {
  readonly identity: GroupIdentity
  /** First of its session. */
  readonly isFirst: boolean
}

/** The same with its bytes, which are valid until the next group is sealed. */
export interface GroupToWrite extends SealedGroup {
  readonly bytesView: Uint8Array
}

export class JournalSession {
  readonly #options: SessionOptions
  readonly #encoder: GroupEncoder
  #salt: bigint
  #ordinal: number
  /** Sequence of the session's first group, once it is written. */
  #first: number | undefined
  #parent = 0
  /** The group written last, and the last one that is synced. */
  #last: GroupIdentity
  #durable: GroupIdentity

  constructor(options: SessionOptions) {
    this.#options = options
    this.#encoder = new GroupEncoder(options.checksum)
    this.#salt = options.randomU64()
    this.#ordinal = options.start.ordinal
    this.#last = options.start.last
    this.#durable = options.start.last
  }

  get salt(): bigint {
    return this.#salt
  }

  get nextSequence(): number {
    return this.#last.sequence + 1
  }

  /** Gives a group its place in the chain and in `file`, and seals its batches, its header and, in a sealed file, its body. */
  seal(builder: GroupBuilder, file: JournalFile, flags: number, wallUs: bigint): GroupToWrite {
    const { batches, boot } = builder
    const isFirst = this.#first === undefined
    const sequence = this.nextSequence
    builder.sealBatches(seedOf(this.#salt))
    const header = {
      generation: file.generation,
      position: file.position,
      flags: flags | (isFirst ? GROUP_FLAG.isFirst : 0),
      sessionSalt: this.#salt,
      sequence,
      previousCrc: this.#last.crc,
      batchCount: batches.length,
      durableSequence: this.#durable.sequence,
      ordinal: this.#ordinal,
      boot,
      sessionFirst: this.#first ?? sequence,
      wallUs,
      parent: isFirst ? this.#last.ordinal : this.#parent,
      bootHash: this.#options.start.bootHash,
    }
    const { bytesView, crc } = this.#encoder.encode(builder, header, file)
    return { identity: { sequence, crc, ordinal: this.#ordinal }, isFirst, bytesView }
  }

  written({ identity, isFirst }: SealedGroup): void {
    if (isFirst) {
      this.#first = identity.sequence
      this.#parent = this.#last.ordinal
    }
    this.#last = identity
  }

  synced(identity: GroupIdentity): void {
    this.#durable = identity
  }

  /** What was not synced does not count any more: a new session goes on behind the last durable group. */
  restart(): void {
    this.#last = this.#durable
    this.#salt = this.#options.randomU64()
    this.#ordinal++
    this.#first = undefined
  }
}
