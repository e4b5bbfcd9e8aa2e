/**
 * The journal on a full disk. Messages leave it for segments, which take room; where there is none, no file comes free and
 * everybody waits. What lies in the oldest full file can still be given up: a floor is put on record, and the file is
 * recycled without a byte being written elsewhere.
 */
import type { LogEngine } from './engine.ts'
import type { LogPartition } from './partition.ts'
import type { JournalHead, StuckJournalHost } from './ports.ts'

export class StuckJournal implements StuckJournalHost {
  readonly #engine: Pick<LogEngine, 'files' | 'maintenance' | 'partitions' | 'removal'>

  constructor(engine: Pick<LogEngine, 'files' | 'maintenance' | 'partitions' | 'removal'>) {
    this.#engine = engine
  }

  heads(): ReadonlyMap<number, JournalHead> {
    const heads = new Map<number, JournalHead>()
    const { files, maintenance, partitions } = this.#engine
    // Files are freed oldest first: to give up anything of another one would be in vain.
    const oldest = maintenance.isStuck ? files.repackable()[0] : undefined
    if (oldest === undefined) return heads
    for (const partition of partitions.values()) {
      const head = headIn(partition, oldest.number)
      if (head !== undefined) heads.set(partition.key, head)
    }
    return heads
  }

  async drop(key: number, endOffset: bigint): Promise<boolean> {
    const { maintenance, partitions, removal } = this.#engine
    const partition = partitions.get(key)
    return partition !== undefined && removal.dropTo(partition, endOffset, () => maintenance.isStuck)
  }
}

/** What the file holds of the partition stands at the front of its index. */
function headIn(
  { index, watermark, logStartOffset, holesFound }: LogPartition,
  fileNumber: number,
): JournalHead | undefined {
  let count = 0
  let sizeBytes = 0
  while (count < index.count && index.fileNumber(count) === fileNumber) sizeBytes += index.size(count++)
  if (count === 0) return undefined
  const first = index.baseOffset(0)
  const fromOffset = first > logStartOffset ? first : logStartOffset
  const endOffset = count < index.count ? index.baseOffset(count) : watermark.writtenEnd
  const missing = holesFound.countFrom(fromOffset) - holesFound.countFrom(endOffset)
  return { fromOffset, endOffset, messageCount: Number(endOffset - fromOffset) - missing, sizeBytes }
}
