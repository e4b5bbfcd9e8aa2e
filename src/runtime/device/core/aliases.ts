/** What a device has declared: number, topic, kind and lane, until the session ends. Pure. */

import type { EdgeError } from '../../../errors.ts'
import { EDGE_CODES, edgeCodeOf, type Frame, LANES, type PartitionChoice } from '../../../sdk/wire/edge/index.ts'
import { DatagramMask } from './datagram-mask.ts'
import type { TargetFacts } from './exchange.ts'
import { KINDS, StoredForm } from './stored-form.ts'

export interface AliasRefusal {
  readonly code: number
  readonly retryMs: number | null
  readonly text: string
}

export interface Alias {
  readonly id: number
  readonly topic: string
  readonly partition: PartitionChoice | undefined
  readonly lane: number
  readonly form: StoredForm
  readonly wantsOffsets: boolean
  readonly datagrams: DatagramMask
  /** Where its readings go, or why they may not; undefined for the moment between the two. */
  target: TargetFacts | undefined
  refusal: AliasRefusal | undefined
}

export class Aliases {
  readonly #deviceName: string
  readonly #maxCount: number
  readonly #aliases = new Map<number, Alias>()

  constructor(deviceName: string, maxCount: number) {
    this.#deviceName = deviceName
    this.#maxCount = maxCount
  }

  get(id: number): Alias | undefined {
    return this.#aliases.get(id)
  }

  values(): Iterable<Alias> {
    return this.#aliases.values()
  }

  /**
   * Replaces what the number stood for: readings that came before keep it. One that is refused is kept with its refusal: what
   * comes under it is refused for good too, and its lane goes on.
   *
   * @returns the refusal of the declaration itself, or undefined when it stands.
   */
  declare(frame: Frame<'alias'>): AliasRefusal | undefined {
    const refused = this.#problemOf(frame)
    this.#aliases.set(frame.alias, {
      id: frame.alias,
      topic: frame.topic,
      partition: frame.options?.partition,
      lane: frame.options?.lane ?? LANES.live,
      form: new StoredForm(this.#deviceName, frame),
      wantsOffsets: frame.options?.wantsOffsets ?? false,
      // Their numbers go on: they count per number and session.
      datagrams: this.#aliases.get(frame.alias)?.datagrams ?? new DatagramMask(),
      target: undefined,
      refusal: refused,
    })
    return refused
  }

  #problemOf(frame: Frame<'alias'>): AliasRefusal | undefined {
    const standing = [...this.#aliases.values()].filter((one) => one.id !== frame.alias && one.refusal === undefined)
    if (standing.length >= this.#maxCount) return refusal('limitReached', `at most ${this.#maxCount} aliases`)
    if (frame.kind === KINDS.numbers && frame.options?.fields === undefined)
      return refusal('valueInvalid', 'kind 3 needs fields')
    return undefined
  }

  resolved(id: number, target: TargetFacts): void {
    const alias = this.#aliases.get(id)
    if (alias === undefined) return
    alias.target = target
    alias.refusal = undefined
  }

  /** @returns what the device is to be told; undefined when it was told already. */
  refused(id: number, error: EdgeError): AliasRefusal | undefined {
    const { code, retryMs } = EDGE_CODES[edgeCodeOf(error)]
    const found = { code, retryMs, text: shortText(error.message) }
    const alias = this.#aliases.get(id)
    const wasTold = alias?.refusal !== undefined
    if (alias !== undefined) alias.refusal = found
    return wasTold ? undefined : found
  }

  /** Those that may stand by now: their topic was not there. */
  refusedForNow(): Alias[] {
    return [...this.#aliases.values()].filter(({ refusal }) => refusal !== undefined && refusal.retryMs !== null)
  }
}

/** For frames: text is at most 120 bytes long. */
export function shortText(text: string): string {
  let short = text.slice(0, 120)
  while (new TextEncoder().encode(short).byteLength > 120) short = short.slice(0, -1)
  return short
}

/** For good: as long as the session lasts, waiting changes nothing. */
function refusal(name: 'valueInvalid' | 'limitReached', text: string): AliasRefusal {
  return { code: EDGE_CODES[name].code, retryMs: null, text }
}
