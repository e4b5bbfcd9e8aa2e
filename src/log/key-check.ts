/**
 * Tells a wrong or missing key before anything of the data folder is touched. `store.json` notes a check value of each key
 * that files may be sealed with; a file's header names its key by the first four bytes of it.
 */

import { parseStore } from './catalog/descriptor.ts'
import { DescriptorFiles, type Found } from './catalog/descriptor-files.ts'
import { numberOf, partitionFolder, STORE_FILE, STREAMS, topicFolder, topicsFolder } from './catalog/layout.ts'
import { parseSegmentName } from './core/segment-format.ts'
import { type FileSystem, type LogFile, openToRead } from './io/file-system.ts'
import { journalPath } from './io/journal-file.ts'
import { readJournalHeader } from './io/journal-header.ts'
import { keyWrong } from './io/key-source.ts'
import { REFUGE, refugeFolder } from './io/refuge.ts'
import { type NamedSegment, readSegmentHeader } from './io/segment-header.ts'
import { formatKeyId, type StoreKeys } from './io/store-keys.ts'

const SEPARATOR = ' '

/**
 * Looks at `store.json`, and where it names a key that was not given, or cannot be read, at the header of every file: a key
 * that none needs any more may be left out.
 *
 * @throws EDGE_KEY_WRONG.
 */
export function refuseWrongKeys(fileSystem: FileSystem, keys: StoreKeys): void {
  const noted = notedChecks(new DescriptorFiles(fileSystem).read(STORE_FILE))
  if (noted?.every((check) => keys.checks.includes(check)) === true) return
  let first: { readonly path: string; readonly keyId: number } | undefined
  let count = 0
  for (const { path, keyId } of sealedFiles(fileSystem)) {
    if (keys.has(keyId)) continue
    first ??= { path, keyId }
    if (keyId === first.keyId) count++
  }
  if (first === undefined) return
  const given = keys.checks.length === 0 ? 'no key was given' : 'the key that was given is another'
  const text = `${first.path} and ${count - 1} more files are sealed with key ${formatKeyId(first.keyId)}, and ${given}`
  throw keyWrong(`${text}: set log.encryption.key or key_file (or previous_keys); nothing was changed`)
}

/** Keys that `store.json` names and that were not given: files may be sealed with them, or none any more. */
export function missingChecks(keyCheck: string | null, keys: StoreKeys): readonly string[] {
  return checksIn(keyCheck).filter((check) => !keys.checks.includes(check))
}

/** What `store.json` is to note while these keys are in use. */
export const keyCheckOf = (keys: StoreKeys): string | null =>
  keys.checks.length === 0 ? null : keys.checks.join(SEPARATOR)

const checksIn = (keyCheck: string | null): readonly string[] => (keyCheck === null ? [] : keyCheck.split(SEPARATOR))

/** @returns null when only the files themselves can tell. */
function notedChecks(found: Found): readonly string[] | null {
  if (found.kind === 'missing') return null
  const parsed = found.kind === 'sound' ? parseStore(found.body) : undefined
  // A newer store is refused for that, by whoever opens it.
  if (parsed?.kind === 'newer') return []
  return parsed?.kind === 'sound' ? checksIn(parsed.value.keyCheck) : null
}

function* sealedFiles(fileSystem: FileSystem): Generator<{ path: string; keyId: number }> {
  for (const { name } of fileSystem.list('journal')) {
    const number = numberOf(name)
    if (number === null) continue
    const path = journalPath(number)
    const keyId = withFile(
      fileSystem,
      path,
      (handle) => readJournalHeader(handle, path, undefined).header,
    )?.encryptionKeyId
    if (keyId) yield { path, keyId }
  }
  for (const { file, key } of segmentFiles(fileSystem)) {
    const keyId = withFile(fileSystem, file.path, (handle) => readSegmentHeader(handle, file, key))?.encryptionKeyId
    if (keyId) yield { path: file.path, keyId }
  }
}

function* segmentFiles(fileSystem: FileSystem): Generator<{ file: NamedSegment; key: number }> {
  for (const { folder, key } of segmentFolders(fileSystem)) {
    for (const { name } of fileSystem.list(folder)) {
      const parsed = parseSegmentName(name)
      if (parsed !== undefined) yield { file: { path: `${folder}/${name}`, ...parsed }, key }
    }
  }
}

function* segmentFolders(fileSystem: FileSystem): Generator<{ folder: string; key: number }> {
  for (const streamId of numbersIn(fileSystem, STREAMS)) {
    for (const topicId of numbersIn(fileSystem, topicsFolder(streamId))) {
      for (const key of numbersIn(fileSystem, topicFolder(streamId, topicId)))
        yield { folder: partitionFolder(streamId, topicId, key), key }
    }
  }
  for (const key of numbersIn(fileSystem, REFUGE)) yield { folder: refugeFolder(key), key }
}

const numbersIn = (fileSystem: FileSystem, folder: string): readonly number[] =>
  fileSystem
    .list(folder)
    .filter((entry) => entry.isDirectory)
    .map(({ name }) => numberOf(name))
    .filter((number) => number !== null)

function withFile<T>(fileSystem: FileSystem, path: string, use: (handle: LogFile) => T): T {
  const handle = openToRead(fileSystem, path)
  try {
    return use(handle)
  } finally {
    handle.close()
  }
}
