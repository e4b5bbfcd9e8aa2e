/**
 * The log in a file, for machines whose standard error nobody keeps. Full files are numbered, and old ones deleted. Written
 * with each line and never synced: what a power cut takes is not worth the wear. A disk that refuses costs lines, never the
 * service; they stand on standard error as well.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { refuseOtherThanFile } from '../../file-kind.ts'
import { isLogFileFull, type LogFileLimits, type OldLogFile, planLogSweep } from './log-file-plan.ts'

export interface LogFileOptions extends LogFileLimits {
  /** Absolute; full files have `.1`, `.2` and so on behind it, the newest the highest. */
  readonly path: string
  /** Nothing is made before it is there: a data folder that is missing is a disk that is not mounted. */
  readonly dataPath: string
  readonly nowMs: () => number
}

/** Logs may tell names that are nobody's but the service's and its group's. */
const FILE_MODE = 0o640
const FOLDER_MODE = 0o750
/** Where nothing is written for long, files still grow old. */
const SWEEP_INTERVAL_MS = 3_600_000

export class LogFile {
  readonly #options: LogFileOptions
  #descriptor: number | undefined
  #sizeBytes = 0
  #sweptMs = 0

  constructor(options: LogFileOptions) {
    this.#options = options
  }

  write(line: string): void {
    const { dataPath, nowMs } = this.#options
    const bytes = Buffer.from(line)
    try {
      if (this.#descriptor === undefined && !existsSync(dataPath)) return
      let descriptor = this.#descriptor ?? this.#open()
      if (isLogFileFull(this.#sizeBytes, bytes.length, this.#options)) descriptor = this.#roll()
      // In both directions: the clock of a gateway may begin decades ahead.
      if (Math.abs(nowMs() - this.#sweptMs) > SWEEP_INTERVAL_MS) this.#sweep()
      this.#sizeBytes += writeSync(descriptor, bytes)
    } catch {
      // Opened anew with the next line: somebody may have made room, or mounted the folder.
      this.close()
    }
  }

  close(): void {
    if (this.#descriptor === undefined) return
    const descriptor = this.#descriptor
    this.#descriptor = undefined
    try {
      closeSync(descriptor)
    } catch {
      // A disk that failed: there is nothing left to keep.
    }
  }

  #open(): number {
    const { path } = this.#options
    mkdirSync(dirname(path), { recursive: true, mode: FOLDER_MODE })
    refuseOtherThanFile(path)
    const descriptor = openSync(path, 'a', FILE_MODE)
    this.#descriptor = descriptor
    this.#sizeBytes = fstatSync(descriptor).size
    return descriptor
  }

  #roll(): number {
    const { path } = this.#options
    this.close()
    const highest = this.#oldFiles().reduce((high, { number }) => Math.max(high, number), 0)
    renameSync(path, `${path}.${highest + 1}`)
    this.#sweep()
    return this.#open()
  }

  #sweep(): void {
    const nowMs = this.#options.nowMs()
    this.#sweptMs = nowMs
    for (const number of planLogSweep(this.#oldFiles(), this.#options, nowMs)) {
      rmSync(`${this.#options.path}.${number}`, { force: true })
    }
  }

  #oldFiles(): readonly OldLogFile[] {
    const { path } = this.#options
    const folder = dirname(path)
    const prefix = `${basename(path)}.`
    return readdirSync(folder)
      .filter((name) => name.startsWith(prefix) && /^[1-9]\d{0,8}$/.test(name.slice(prefix.length)))
      .flatMap((name) => {
        const found = statSync(join(folder, name), { throwIfNoEntry: false })
        if (found === undefined) return []
        return [{ number: Number(name.slice(prefix.length)), sizeBytes: found.size, writtenMs: found.mtimeMs }]
      })
  }
}
