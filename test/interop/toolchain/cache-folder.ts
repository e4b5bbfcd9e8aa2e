/**
 * Where downloaded and compiled clients are kept: outside the checkout, so that a clean one finds them again. Entries are
 * named after what they are made of (versions, a hash of the lock file), so a changed lock makes a new entry.
 */
import { createHash } from 'node:crypto'
import { closeSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

export const CLIENTS_FOLDER = new URL('../clients/', import.meta.url).pathname
/** How often a lock that another test file holds is looked at. */
const LOCK_POLL_MS = 200

export function cacheFolder(): string {
  const { EDGE_INTEROP_CACHE, XDG_CACHE_HOME } = process.env
  const folder = EDGE_INTEROP_CACHE || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'iggy-edge-interop')
  mkdirSync(folder, { recursive: true })
  return folder
}

/** First characters of the hash over files of `clients/`: the name of what is made of them. */
export function hashOfFiles(paths: readonly string[]): string {
  const hash = createHash('sha256')
  for (const path of paths)
    hash
      .update(path)
      .update('\0')
      .update(readFileSync(join(CLIENTS_FOLDER, path)))
  return hash.digest('hex').slice(0, 12)
}

/**
 * Runs `work` while no other process holds the lock of that name. Test files run side by side and share what they build.
 * A lock whose holder is gone is taken over.
 */
export async function withLock<T>(name: string, deadlineMs: number, work: () => Promise<T>): Promise<T> {
  const path = join(cacheFolder(), `${name}.lock`)
  while (!take(path)) {
    if (Date.now() > deadlineMs) throw new Error(`another process still prepares ${name}`)
    await delay(LOCK_POLL_MS)
  }
  try {
    return await work()
  } finally {
    rmSync(path, { force: true })
  }
}

function take(path: string): boolean {
  try {
    const file = openSync(path, 'wx')
    writeSync(file, String(process.pid))
    closeSync(file)
    return true
  } catch {
    if (!isHeld(path)) rmSync(path, { force: true })
    return false
  }
}

function isHeld(path: string): boolean {
  try {
    const holder = Number(readFileSync(path, 'utf8'))
    // Empty between its creation and its first write.
    if (holder === 0) return true
    process.kill(holder, 0)
    return true
  } catch {
    return false
  }
}
