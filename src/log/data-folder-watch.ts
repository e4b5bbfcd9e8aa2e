/**
 * Looks every second or two whether what the process has open still lies in the data folder. A folder that was deleted or
 * moved away takes writes and syncs as before, and nothing of it is there at the next start: so nothing is taken any more
 * until it is back. A segment that was deleted alone costs its own offsets, which is told before somebody wants to read them.
 */
import { EdgeError } from '../errors.ts'
import type { FileLock } from '../file-lock.ts'
import type { FileSystem } from './io/file-system.ts'
import type { Segment } from './io/segment.ts'
import type { LogPartition } from './partition.ts'
import type { ReportFinding } from './ports.ts'
import type { Scheduler } from './scheduler.ts'

export const FOLDER_CHECK_MS = 2000
/** Of all partitions in turn: half a millisecond, and thousands within a minute. */
const SEGMENTS_PER_CHECK = 256

export interface DataFolderWatchOptions {
  /** As the operator named it. */
  readonly path: string
  readonly fileSystem: FileSystem
  readonly lock: FileLock
  readonly scheduler: Scheduler
  readonly report: ReportFinding
  readonly partitions: () => Iterable<LogPartition>
  /** @param failure why nothing can be taken; undefined when the folder is back. */
  readonly changed: (failure: EdgeError | undefined) => void
}

interface Place {
  readonly partition: LogPartition
  readonly segment: Segment
}

export class DataFolderWatch {
  readonly #options: DataFolderWatchOptions
  #isGone = false
  #walk: Iterator<Place> = [].values()
  /** Not found: one more look tells whether they were just on their way out. */
  #missing: readonly Place[] = []
  #cancel: () => void = () => {}

  constructor(options: DataFolderWatchOptions) {
    this.#options = options
    this.#again()
  }

  close(): void {
    this.#cancel()
  }

  #again(): void {
    this.#cancel = this.#options.scheduler.after(FOLDER_CHECK_MS, () => {
      this.#look()
      this.#again()
    })
  }

  #look(): void {
    const isGone = !this.#options.lock.isHeld()
    if (isGone !== this.#isGone) this.#tell(isGone)
    this.#isGone = isGone
    if (!isGone) this.#lookAtSegments()
  }

  #tell(isGone: boolean): void {
    const { path, report, changed } = this.#options
    const fields = { path }
    if (isGone) {
      const text = `the data folder ${path} was deleted or moved away while the edge runs: nothing is taken until it is back`
      report({ event: 'log.folder.gone', level: 'error', text, fields })
      changed(new EdgeError('EDGE_APPEND_FAILED', text, { details: fields }))
      return
    }
    const text = `the data folder ${path} is back: messages are taken again`
    report({ event: 'log.folder.back', level: 'warn', text, fields })
    changed(undefined)
  }

  #lookAtSegments(): void {
    for (const place of this.#missing.filter(isMissingIn(this.#options.fileSystem))) {
      const { partition, segment } = place
      // One that goes meanwhile was not lost.
      if (!partition.segments.includes(segment)) continue
      partition.damaged(segment.baseOffset, segment.endOffset, `${segment.path} was deleted while the edge runs`)
    }
    this.#missing = [...this.#nextPlaces()].filter(isMissingIn(this.#options.fileSystem))
  }

  *#nextPlaces(): Generator<Place> {
    for (let count = 0; count < SEGMENTS_PER_CHECK; count++) {
      const next = this.#walk.next()
      if (next.done === true) {
        this.#walk = placesOf(this.#options.partitions())
        return
      }
      yield next.value
    }
  }
}

/** The oldest of each partition first. */
function* placesOf(partitions: Iterable<LogPartition>): Generator<Place> {
  for (const partition of [...partitions]) for (const segment of partition.segments) yield { partition, segment }
}

const isMissingIn =
  (fileSystem: FileSystem) =>
  ({ segment }: Place): boolean =>
    fileSystem.identity(segment.path) === undefined
