/** Which of the log's old files go. Their numbers rise and are never given again, so a name always means the same lines. Pure. */

import { EARLIEST_WALL_US } from '../../clock.ts'

const EARLIEST_MS = Number(EARLIEST_WALL_US / 1000n)

export interface LogFileLimits {
  /** A file that would become larger is closed and numbered; 0 is off. */
  readonly maxFileBytes: number
  /** The numbered ones and the one that is written to together; 0 is off. */
  readonly maxTotalBytes: number
  readonly retentionMs: number
}

export interface OldLogFile {
  readonly number: number
  readonly sizeBytes: number
  /** When its last line was written. */
  readonly writtenMs: number
}

/** Whether a line goes into a new file. One that is larger than a file is a file by itself. */
export function isLogFileFull(sizeBytes: number, lineBytes: number, { maxFileBytes }: LogFileLimits): boolean {
  return maxFileBytes > 0 && sizeBytes > 0 && sizeBytes + lineBytes > maxFileBytes
}

/** @returns numbers of the files that are too old, or too many beside a full one, oldest first. */
export function planLogSweep(files: readonly OldLogFile[], limits: LogFileLimits, nowMs: number): readonly number[] {
  const { maxFileBytes, maxTotalBytes, retentionMs } = limits
  const newestFirst = files.toSorted((a, b) => b.number - a.number)
  let keptBytes = maxFileBytes
  const gone = newestFirst.filter(({ sizeBytes, writtenMs }) => {
    keptBytes += sizeBytes
    // Of one that was written while the clock was not set nobody knows how old it is.
    const isOld = writtenMs >= EARLIEST_MS && nowMs - writtenMs > retentionMs
    return isOld || (maxTotalBytes > 0 && keptBytes > maxTotalBytes)
  })
  return gone.map(({ number }) => number).reverse()
}
