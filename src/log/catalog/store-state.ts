import { EdgeError } from '../../errors.ts'
import type { FileSystem } from '../io/file-system.ts'
import { DESCRIPTOR_VERSION, type Parsed, parseStore, type StoreDescriptor } from './descriptor.ts'
import { DescriptorFiles } from './descriptor-files.ts'
import { METADATA_FILE, STORE_FILE, STREAMS } from './layout.ts'

/** What the data folder is, found without writing anything. */
export type StoreState =
  | { readonly kind: 'existing'; readonly store: StoreDescriptor }
  | { readonly kind: 'first-start' }
  /** Other files of a store are there, `store.json` is missing or damaged. */
  | { readonly kind: 'lost'; readonly isDamaged: boolean }

/** Entries of which one is enough to tell a data folder from an empty mount point. */
const OTHER_ENTRIES = [METADATA_FILE, STREAMS, 'journal']

/**
 * The first look into a data folder, before anything in it is opened, made or repaired.
 *
 * @param expectExisting the folder held a store before: an empty one is a disk that was not mounted, and a store made in
 * the mount point would vanish under the disk later.
 * @throws {EdgeError} EDGE_STORE_NEWER, EDGE_STORE_MISSING.
 */
export function inspectStore(fileSystem: FileSystem, expectExisting: boolean): StoreState {
  const found = new DescriptorFiles(fileSystem).read(STORE_FILE)
  if (found.kind === 'sound') {
    const parsed = parseStore(found.body)
    if (parsed.kind === 'newer') throw storeNewer(STORE_FILE, parsed.version)
    if (parsed.kind === 'sound') return { kind: 'existing', store: parsed.value }
  }
  const names = new Set(fileSystem.list('').map(({ name }) => name))
  const isEmpty = !OTHER_ENTRIES.some((name) => names.has(name)) && found.kind === 'missing'
  if (!isEmpty) return { kind: 'lost', isDamaged: found.kind !== 'missing' }
  if (!expectExisting) return { kind: 'first-start' }
  throw new EdgeError(
    'EDGE_STORE_MISSING',
    'the data folder holds no store, and none is made there (by dump never, by run not with system.expect_existing): is its disk mounted?',
  )
}

/** @returns the value, or null when it is damaged. @throws EDGE_STORE_NEWER. */
export function soundOr<T>(path: string, parsed: Parsed<T>): T | null {
  if (parsed.kind === 'newer') throw storeNewer(path, parsed.version)
  return parsed.kind === 'sound' ? parsed.value : null
}

function storeNewer(path: string, version: number): EdgeError {
  return new EdgeError(
    'EDGE_STORE_NEWER',
    `${path} has format ${version}, this release knows up to ${DESCRIPTOR_VERSION}: install the newer release again`,
    { details: { path, found: version, known: DESCRIPTOR_VERSION } },
  )
}
