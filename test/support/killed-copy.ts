import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/**
 * A data folder as a kill leaves it now, page cache included: copied to `copy`, in the place of what was there, without the
 * lock, which names a process that lives.
 */
export function killedCopy(path: string, copy: string): string {
  rmSync(copy, { recursive: true, force: true })
  cpSync(path, copy, { recursive: true })
  rmSync(join(copy, 'lock'), { force: true })
  return copy
}
