/**
 * `run --fresh`: empties a data folder. Only of what is ours: a path with a typing error must not cost anybody's files. Only
 * where a start follows: a typing error in the configuration must not cost the store.
 */
import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { findLogProblems, LOCK_FILE, lockStore } from '../../log/index.ts'
import { checkRootCredentials, type RootCredentials } from '../broker/index.ts'
import { configInvalid } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { startRefusal } from '../config-problems.ts'

/** What the runtime makes in its data folder. */
const OWN_ENTRIES: ReadonlySet<string> = new Set([
  'store.json',
  'streams',
  'refuge',
  'journal',
  'staging',
  'trash',
  'quarantine',
  'certificate',
  'runtime',
  'logs',
  'reserve',
  'reserve-drops',
  'sync-failed',
  LOCK_FILE,
])
/** SQLite's files, and temporary ones of ours. */
const OWN_NAMES = /^(metadata\.sqlite.*|.+\.tmp)$/
/** Made by mkfs in the root of a disk of its own. */
const NOT_OURS_AND_KEPT = 'lost+found'

/** What would refuse the start in the emptied folder. @throws {EdgeError} EDGE_CONFIG_INVALID, EDGE_CERTIFICATE_UNUSABLE. */
export async function refuseFresh(config: Config, root: RootCredentials): Promise<void> {
  const refusal = startRefusal(config)
  if (refusal !== undefined) throw refusal
  const { system, 'log.encryption': encryption, retention } = config
  const problems = [
    ...(await findLogProblems({ encryption, retention })),
    ...(system.expect_existing ? ['system.expect_existing: found true, expected false beside --fresh'] : []),
  ]
  if (problems.length > 0) throw configInvalid(problems)
  checkRootCredentials(root)
}

/**
 * @throws {EdgeError} EDGE_STORE_IN_USE, EDGE_CONFIG_INVALID when anything in it is not ours: then nothing was deleted; EDGE_IO
 *   when the system refuses.
 */
export function removeStore(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isDirectory())
    throw new EdgeError('EDGE_CONFIG_INVALID', `--fresh: ${path} is no folder: nothing was deleted`)
  // Before anything is written there, be it a lock.
  ownNames(path)
  const lock = lockStore(path)
  try {
    // The folder stays: it may be where a disk is mounted.
    for (const name of ownNames(path)) if (name !== LOCK_FILE) remove(join(path, name))
  } finally {
    lock.remove()
  }
}

/** @throws {EdgeError} EDGE_CONFIG_INVALID when anything is not ours. */
function ownNames(path: string): readonly string[] {
  const names = readdirSync(path).filter((name) => name !== NOT_OURS_AND_KEPT)
  const stranger = names.find((name) => !OWN_ENTRIES.has(name) && !OWN_NAMES.test(name))
  if (stranger !== undefined) {
    throw new EdgeError(
      'EDGE_CONFIG_INVALID',
      `--fresh: ${path} holds "${stranger}", which is not ours: nothing was deleted; empty the folder yourself or name another`,
    )
  }
  return names
}

function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch (cause) {
    const { message } = toEdgeError(cause)
    throw new EdgeError('EDGE_IO', `--fresh: ${path} cannot be deleted: ${message}`, { cause })
  }
}
