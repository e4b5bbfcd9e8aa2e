/** Partitions whose folder takes no files: told once when it begins, and once when it has ended. */

import type { EdgeError } from '../errors.ts'
import type { EngineOptions } from './engine-options.ts'
import { refugeFolder } from './io/refuge.ts'
import type { LogPartition } from './partition.ts'
import { partitionText } from './place-text.ts'

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
