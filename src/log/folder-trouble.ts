/** Folders that cannot be listed, and those of partitions that take no files: told when it begins, and when it has ended. */

import type { EdgeError } from '../errors.ts'
import type { EngineOptions } from './engine-options.ts'
import { type DirectoryEntry, type FileSystem, isRefused } from './io/file-system.ts'
import { refugeFolder } from './io/refuge.ts'
import type { LogPartition } from './partition.ts'
import { partitionText } from './place-text.ts'
import type { ReportFinding } from './ports.ts'

/** What lies in a folder; undefined where it cannot be listed, which is told. @throws EDGE_IO in a shortage. */
export function listTold(
  { fileSystem, report }: { readonly fileSystem: Pick<FileSystem, 'list'>; readonly report: ReportFinding },
  path: string,
): readonly DirectoryEntry[] | undefined {
  try {
    return fileSystem.list(path)
  } catch (error) {
    if (!isRefused(error)) throw error
    const text = `${path} cannot be listed, what lies there is left as it is: ${error.message}`
    report({ event: 'log.folder.unreadable', level: 'error', text, fields: { path, error_code: error.code } })
    return undefined
  }
}

export class FolderTrouble {
  readonly #options: Pick<EngineOptions, 'report' | 'descriptors'>
  readonly #refusing = new Set<number>()

  constructor(options: Pick<EngineOptions, 'report' | 'descriptors'>) {
    this.#options = options
  }

  /** Folders that take no files now. */
  get count(): number {
    return this.#refusing.size
  }

  /** A file of the partition was begun in its folder, or was refused there and lies in its refuge. */
  placed(partition: LogPartition, refusal: EdgeError | undefined): void {
    const { key, spec } = partition
    if (this.#refusing.has(key) === (refusal !== undefined)) return
    const place = `${spec.directory} of ${partitionText(this.#options.descriptors, partition)}`
    if (refusal !== undefined) {
      this.#refusing.add(key)
      const text = `${place} takes no files, its messages are kept in ${refugeFolder(key)} until it does: ${refusal.message}`
      this.#report('log.folder.refused', text, partition, { error_code: refusal.code })
      return
    }
    this.#refusing.delete(key)
    this.#report('log.folder.resumed', `${place} takes files again`, partition, {})
  }

  /** It was deleted. */
  removed(key: number): void {
    this.#refusing.delete(key)
  }

  #report(event: string, text: string, partition: LogPartition, more: Record<string, string>): void {
    const { streamId, topicId, partitionId, spec } = partition
    const fields = { stream_id: streamId, topic_id: topicId, partition_id: partitionId, path: spec.directory, ...more }
    this.#options.report({ event, level: 'warn', text, fields })
  }
}
