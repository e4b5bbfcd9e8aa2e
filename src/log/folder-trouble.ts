/** Folders that cannot be listed, and those of partitions that take no files: told when it begins, and when it has ended. */

import type { EdgeError } from '../errors.ts'
import { formatSegmentName } from './core/segment-format.ts'
import type { EngineOptions } from './engine-options.ts'
import { type DirectoryEntry, type FileSystem, isDone, type LogFile, listGiven } from './io/file-system.ts'
import { createInFolder, refugeFolder } from './io/refuge.ts'
import type { LogPartition } from './partition.ts'
import { partitionText } from './place-text.ts'
import type { ReportFinding } from './ports.ts'

/** What lies in a folder; undefined where it cannot be listed, which is told. @throws EDGE_IO in a shortage. */
export function listTold(
  { fileSystem, report }: { readonly fileSystem: Pick<FileSystem, 'list'>; readonly report: ReportFinding },
  path: string,
): readonly DirectoryEntry[] | undefined {
  return listGiven(fileSystem, path, ({ code, message }) => {
    const text = `${path} cannot be listed, what lies there is left as it is: ${message}`
    report({ event: 'log.folder.unreadable', level: 'error', text, fields: { path, error_code: code } })
  })
}

/** Between two tries whether a folder takes files again, so that health says it within a minute of its mending. */
const PROBE_MS = 20_000
/** Folders tried in one go; the others have their turn later. */
const MAX_PROBES = 64
/** What the smallest segment takes: a quota that is used up gives out names, and no room. */
const PROBE_SIZE = 4096
/** No run has that number: what a kill leaves is removed by the next start as a large batch that nothing refers to. */
const PROBE_NAME = formatSegmentName({ baseOffset: 0n, runNumber: 0, isExternal: true })

export type FolderTroubleOptions = Pick<EngineOptions, 'report' | 'descriptors' | 'fileSystem' | 'scheduler'>

export class FolderTrouble {
  readonly #options: FolderTroubleOptions
  /** By key; who was tried last comes last. */
  readonly #refusing = new Map<number, LogPartition>()
  #cancel: (() => void) | undefined

  constructor(options: FolderTroubleOptions) {
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
      this.#refusing.set(key, partition)
      const end = partition.folderRefusal === undefined ? 'until it does' : 'until the next start'
      const text = `${place} takes no files, its messages are kept in ${refugeFolder(key)} ${end}: ${refusal.message}`
      this.#report('log.folder.refused', text, partition, { error_code: refusal.code })
      this.#probeLater()
      return
    }
    this.#refusing.delete(key)
    this.#report('log.folder.resumed', `${place} takes files again`, partition, {})
  }

  /** It was deleted. */
  removed(key: number): void {
    this.#refusing.delete(key)
  }

  close(): void {
    this.#cancel?.()
  }

  /** The next file may be hours away, and an operator who has mended the folder wants to see it. */
  #probeLater(): void {
    this.#cancel?.()
    this.#cancel = this.#options.scheduler.after(PROBE_MS, () => {
      this.#cancel = undefined
      for (const [key, partition] of [...this.#refusing].slice(0, MAX_PROBES)) {
        this.#refusing.delete(key)
        this.#refusing.set(key, partition)
        // One that was given up is left alone.
        if (partition.folderRefusal === undefined && this.#takesFiles(partition)) this.placed(partition, undefined)
      }
      if (this.#refusing.size > 0) this.#probeLater()
    })
  }

  #takesFiles(partition: LogPartition): boolean {
    const { fileSystem } = this.#options
    const path = `${partition.spec.directory}/${PROBE_NAME}`
    let file: LogFile | undefined
    const isTaken = isDone(() => {
      fileSystem.unlink(path)
      file = createInFolder(fileSystem, path, () => {
        // Synced by the first run that packs into it.
        partition.isFolderNameDirty = true
      })
      file.write(new Uint8Array(PROBE_SIZE), 0)
    })
    file?.close()
    return isDone(() => fileSystem.unlink(path)) && isTaken
  }

  #report(event: string, text: string, partition: LogPartition, more: Record<string, string>): void {
    const { streamId, topicId, partitionId, spec } = partition
    const fields = { stream_id: streamId, topic_id: topicId, partition_id: partitionId, path: spec.directory, ...more }
    this.#options.report({ event, level: 'warn', text, fields })
  }
}
