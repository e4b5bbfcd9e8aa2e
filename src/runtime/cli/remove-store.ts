/** `run --fresh`: empties a data folder. Only of what is ours: a path with a typing error must not cost anybody's files. */
import { readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { refuseHeld } from '../../log/index.ts'

/** What the runtime makes in its data folder. */
const OWN_ENTRIES: ReadonlySet<string> = new Set([
  'store.json',
  'streams',
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
  'lock',
])
/** SQLite's files, and temporary ones of ours. */
const OWN_NAMES = /^(metadata\.sqlite.*|.+\.tmp)$/
/** Made by mkfs in the root of a disk of its own. */
const NOT_OURS_AND_KEPT = 'lost+found'

/**
 * @throws {EdgeError} EDGE_STORE_IN_USE, EDGE_CONFIG_INVALID when anything in it is not ours: then nothing was deleted; EDGE_IO
 *   when the system refuses.
 */
export function removeStore(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isDirectory())
    throw new EdgeError('EDGE_CONFIG_INVALID', `--fresh: ${path} is no folder: nothing was deleted`)
  refuseHeld(path)
  const names = readdirSync(path).filter((name) => name !== NOT_OURS_AND_KEPT)
  const stranger = names.find((name) => !OWN_ENTRIES.has(name) && !OWN_NAMES.test(name))
  if (stranger !== undefined) {
    throw new EdgeError(
      'EDGE_CONFIG_INVALID',
      `--fresh: ${path} holds "${stranger}", which is not ours: nothing was deleted; empty the folder yourself or name another`,
    )
  }
  // The folder stays: it may be where a disk is mounted.
  for (const name of names) remove(join(path, name))
}

function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch (cause) {
    const { message } = toEdgeError(cause)
    throw new EdgeError('EDGE_IO', `--fresh: ${path} cannot be deleted: ${message}`, { cause })
  }
}
