/**
 * A file system that says when it is asked for a file or folder by name. A start looks at all there are, for minutes where a
 * power cut left much on a slow card, and mostly without a turn of the event loop: who waits for it learns here that it goes on.
 */
import type { FileSystem } from './file-system.ts'

export function toldFileSystem(fileSystem: FileSystem, onProgress: () => void): FileSystem {
  return {
    ...fileSystem,
    list(path) {
      onProgress()
      return fileSystem.list(path)
    },
    open(path, mode) {
      onProgress()
      return fileSystem.open(path, mode)
    },
    unlink(path) {
      onProgress()
      fileSystem.unlink(path)
    },
    syncDirectory(path) {
      onProgress()
      return fileSystem.syncDirectory(path)
    },
  }
}
