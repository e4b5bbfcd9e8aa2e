/** Journal files that are not there, or not whole, though nothing in the others tells: what that may have cost. */
import { type MissingFiles, missingFiles } from './core/journal-ledger.ts'
import type { DamageTally, FoundJournal } from './io/journal-recovery.ts'

/** Files of the journal that are not there, or not whole, though nothing in the others tells. */
export interface MissingJournal extends MissingFiles, Pick<FoundJournal, 'cutShort'> {
  /** Files that may be the missing ones, caught by a power cut while they were recycled: then nothing is lost. */
  readonly garbledNames: readonly string[]
}

/** @param noted generations of the files when they last changed, as `HintStore` has them. */
export function missingOf(journal: FoundJournal, noted: readonly number[]): MissingJournal {
  const { generations, garbledNames, cutShort } = journal
  return { ...missingFiles(noted, generations), garbledNames, cutShort }
}

/** What they held nobody knows: batches of any partition, up to the end. */
export function noteMissing(damage: DamageTally, { generations, cutShort }: MissingJournal, fileSize: number): void {
  const cutBytes = cutShort.reduce((sum, { expectedSize, foundSize }) => sum + expectedSize - foundSize, 0)
  const lostBytes = generations.length * fileSize + cutBytes
  if (lostBytes === 0) return
  damage.lostBytes += lostBytes
  damage.lastSequence = Number.MAX_SAFE_INTEGER
}
