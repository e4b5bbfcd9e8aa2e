/** Which file lies at a path, told from another of the same name. */
import { statSync } from 'node:fs'
import { UNKNOWN_IDENTITY } from './file-system.ts'

/** A file keeps it where it is moved to. */
export function identityOf(path: string): string | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found && `${found.dev} ${found.ino}`
  } catch {
    return UNKNOWN_IDENTITY
  }
}
