/**
 * Up to where what was sent has its places upstream: each record one, behind those before it. Where an answer tells of a
 * lower place than it should, something before it is missing there. Pure.
 */
export class Alignment {
  #end: bigint
  #missingCount = 0n

  /** @param end offset that is sent next. */
  constructor(end: bigint) {
    this.#end = end
  }

  /** What lies below it had its place when places were compared last. */
  get end(): bigint {
    return this.#end
  }

  /** Places that the last answer told to be missing, until a look has settled it. */
  get missingCount(): bigint {
    return this.#missingCount
  }

  /**
   * A send was confirmed.
   *
   * @param expected lowest place that its last record can have.
   * @param told place that it has; null where the upstream does not tell.
   * @param end offset that is sent next.
   */
  confirmed(expected: bigint, told: bigint | null, end: bigint): void {
    if (told === null) return
    if (told < expected) this.#missingCount = expected - told
    else this.#end = end
  }

  /** The tail was compared, and what is missing is sent next. */
  settled(end: bigint): void {
    this.#end = end
    this.#missingCount = 0n
  }
}
