/** Which file lies at a path, told from another of the same name. */
import { type Stats, statSync } from 'node:fs'

/** Where the disk cannot be asked. */
export const UNKNOWN_IDENTITY = 'unknown'

/** @returns whether what lay there lies there still, as far as anybody can tell. */
export function isInPlace(before: string | undefined, now: string | undefined): boolean {
  return now === UNKNOWN_IDENTITY || before === UNKNOWN_IDENTITY || now === before
}

/** A file keeps it where it is moved to. */
export function identityOf(path: string): string | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found && identityIn(found)
  } catch {
    return UNKNOWN_IDENTITY
  }
}

/** The same of a file that was opened. */
export const identityIn = ({ dev, ino }: Pick<Stats, 'dev' | 'ino'>): string => `${dev} ${ino}`
