/** Whether the upstream holds every reading exactly once and in order: compares both logs message by message. Pure. */
export interface Copy {
  /** u128. */
  readonly id: bigint
  readonly payload: Uint8Array
}

export interface Verdict {
  readonly local: number
  readonly upstream: number
  /** Messages that arrived more than once, by their id. */
  readonly duplicates: number
  readonly missing: number
  readonly isInOrder: boolean
}

/** @param local,upstream messages of one partition on either side, in order. */
export function compareCopies(local: readonly Copy[], upstream: readonly Copy[]): Verdict {
  const seen = new Set<bigint>()
  const once = upstream.filter(({ id }) => !seen.has(id) && seen.add(id))
  const isInOrder = once.every(({ payload }, index) => sameBytes(payload, local[index]?.payload))
  return {
    local: local.length,
    upstream: upstream.length,
    duplicates: upstream.length - once.length,
    missing: Math.max(0, local.length - once.length),
    isInOrder,
  }
}

export function sumVerdicts(verdicts: readonly Verdict[]): Verdict {
  return verdicts.reduce((sum, each) => ({
    local: sum.local + each.local,
    upstream: sum.upstream + each.upstream,
    duplicates: sum.duplicates + each.duplicates,
    missing: sum.missing + each.missing,
    isInOrder: sum.isInOrder && each.isInOrder,
  }))
}

export const isExactlyOnce = ({ duplicates, missing, isInOrder }: Verdict): boolean =>
  duplicates === 0 && missing === 0 && isInOrder

function sameBytes(a: Uint8Array, b: Uint8Array | undefined): boolean {
  return b !== undefined && a.length === b.length && a.every((byte, i) => byte === b[i])
}
