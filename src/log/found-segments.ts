/** Segments that count although a killed process may not have synced them: they are synced before anything is recycled. */
import { markFailure } from './io/failure-mark.ts'
import { type FileSystem, openToRead } from './io/file-system.ts'
import { syncFile } from './io/journal-file.ts'
import { folderOf, foldersNaming } from './io/refuge.ts'

/** With their names. @throws EDGE_IO: the next start must not go by what the cache shows. */
export async function syncFound(fileSystem: FileSystem, paths: readonly string[]): Promise<void> {
  try {
    for (const path of paths) await syncOne(fileSystem, path)
    const folders = new Set(paths.map(folderOf))
    for (const folder of new Set([...folders].flatMap(foldersNaming))) await fileSystem.syncDirectory(folder)
  } catch (error) {
    markFailure(fileSystem)
    throw error
  }
}

async function syncOne(fileSystem: FileSystem, path: string): Promise<void> {
  const handle = openToRead(fileSystem, path)
  try {
    await syncFile(handle)
  } finally {
    handle.close()
  }
}
