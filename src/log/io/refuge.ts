/**
 * Where segments lie that their partition's folder does not take: it was made immutable, lost its rights or is gone, a file
 * stands in its place, it has a quota of its own. The journal's files are those of all topics: one that could not be emptied
 * for the sake of one folder would hold up everybody.
 *
 * `refuge/<key>/` is a second folder of the same partition: what lies there counts as in the first, and stays until retention
 * takes it. New segments go home again as soon as the folder takes them. No rule tells a fault of the folder from one of the
 * disk: the refuge takes the file, or it was the disk.
 */
import { EdgeError } from '../../errors.ts'
import { type FileSystem, isMissing, isShortage, type LogFile, openToRead } from './file-system.ts'
import { syncFile } from './journal-file.ts'

export const REFUGE = 'refuge'

export const refugeFolder = (key: number): string => `${REFUGE}/${key}`

/** More than a journal file ever holds: a disk with that much room is not full, though a folder's quota may be. */
const ROOM_BYTES = 64 * 1024 * 1024

/** Bytes that are copied in one turn. */
const CHUNK_SIZE = 1024 * 1024

/** Whether that file or folder alone may have refused, so that another one is worth a try. */
export function isOfPlace(error: unknown, fileSystem: Pick<FileSystem, 'space'>): error is EdgeError {
  if (!(error instanceof EdgeError) || isShortage(error)) return false
  return error.code === 'EDGE_IO' || (error.code === 'EDGE_DISK_FULL' && fileSystem.space().freeBytes >= ROOM_BYTES)
}

/** Makes a file, and before it the folder when that is missing, whose name is to be made durable then. */
export function createInFolder(fileSystem: FileSystem, path: string, missing: () => void = () => {}): LogFile {
  try {
    return fileSystem.open(path, 'create')
  } catch (error) {
    if (!isMissing(error)) throw error
    missing()
    fileSystem.makeDirectory(folderOf(path))
    return fileSystem.open(path, 'create')
  }
}

/** The folder, and all that its own name hangs on and that may be new. */
export function foldersNaming(directory: string): readonly string[] {
  const parent = folderOf(directory)
  return parent === REFUGE ? [directory, REFUGE, ''] : [directory, parent]
}

/** The copy is durable but for its name when this resolves. */
export async function copyFile(fileSystem: FileSystem, from: string, to: string): Promise<void> {
  // What an earlier try left.
  fileSystem.unlink(to)
  const source = openToRead(fileSystem, from)
  let target: LogFile | undefined
  try {
    target = createInFolder(fileSystem, to)
    const size = source.size()
    const chunk = new Uint8Array(Math.min(CHUNK_SIZE, size))
    for (let position = 0; position < size; position += chunk.length) {
      const count = await source.readLater(chunk.subarray(0, Math.min(chunk.length, size - position)), position)
      target.write(chunk.subarray(0, count), position)
    }
    await syncFile(target)
  } finally {
    source.close()
    target?.close()
  }
}

/**
 * Files of a run that was given up: a name that stays would end the segment before it, but for that of an empty file. Those
 * that are gone leave the set; their folders are to be synced.
 *
 * @throws EDGE_IO: neither can be done, and nothing that was packed since may count.
 */
export async function clearAway(fileSystem: FileSystem, paths: Set<string>): Promise<void> {
  for (const path of paths) {
    if (!removedOrEmptied(fileSystem, path)) {
      const file = fileSystem.open(path, 'existing')
      try {
        await syncFile(file)
      } finally {
        file.close()
      }
    }
    paths.delete(path)
  }
}

/** @returns whether it is removed; else it is empty, and counts as removed once it is synced. @throws EDGE_IO. */
export function removedOrEmptied(fileSystem: FileSystem, path: string): boolean {
  try {
    fileSystem.unlink(path)
    return true
  } catch {
    emptyFile(fileSystem, path)
    return false
  }
}

/** @throws EDGE_IO. */
export function emptyFile(fileSystem: FileSystem, path: string): void {
  const file = fileSystem.open(path, 'existing')
  try {
    file.truncate(0)
  } finally {
    file.close()
  }
}

/** The folder that a file or folder lies in. */
export const folderOf = (path: string): string => (path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '')
