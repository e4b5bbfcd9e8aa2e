/** A consumer as one number: the column of its offset within a partition. Pure. */
import { assert } from '../../assert.ts'
import type { ConsumerKind } from '../api.ts'

/** Consumer ids are u32, so kind and id fit one safe integer. */
const KIND_STEP = 2 ** 32
/** The number of a kind is its place here; docs/formats/metadata.md names them. */
const KINDS: readonly ConsumerKind[] = ['consumer', 'group', 'device']

export function columnOf(kind: ConsumerKind, consumerId: number): number {
  assert(
    Number.isInteger(consumerId) && consumerId >= 0 && consumerId < KIND_STEP,
    `consumer id is a u32: ${consumerId}`,
  )
  return KINDS.indexOf(kind) * KIND_STEP + consumerId
}

/** @returns undefined for a row of a kind that only a newer release knows: such a row is left alone. */
export function columnFrom(kindNumber: number, consumerId: number): number | undefined {
  return KINDS[kindNumber] === undefined ? undefined : kindNumber * KIND_STEP + consumerId
}

export const isKnownColumn = (column: number): boolean => KINDS[Math.floor(column / KIND_STEP)] !== undefined

/** As the database's two columns. */
export function splitColumn(column: number): { readonly kindNumber: number; readonly consumerId: number } {
  return { kindNumber: Math.floor(column / KIND_STEP), consumerId: column % KIND_STEP }
}

export function consumerOf(column: number): { readonly kind: ConsumerKind; readonly consumerId: number } {
  const { kindNumber, consumerId } = splitColumn(column)
  const kind = KINDS[kindNumber]
  assert(kind !== undefined, `consumer column ${column} names a kind`)
  return { kind, consumerId }
}
