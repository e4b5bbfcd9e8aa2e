/** Where the lines of the log go: to standard error always, and to a file where the configuration names one. */
import { resolve } from 'node:path'
import { systemClock } from '../clock.ts'
import { type LineSink, standardError } from '../logger.ts'
import type { Config } from './config/schema.ts'
import { LogFile } from './log-file.ts'

export function logDestination({ system, logging }: Pick<Config, 'system' | 'logging'>): LineSink {
  const stderr = standardError()
  if (logging.file === '') return stderr
  const dataPath = resolve(system.path)
  const file = new LogFile({
    path: resolve(dataPath, logging.file),
    dataPath,
    maxFileBytes: logging.max_file_size,
    maxTotalBytes: logging.max_total_size,
    retentionMs: logging.retention,
    nowMs: () => Number(systemClock.wallUs() / 1000n),
  })
  return {
    write(line) {
      stderr.write(line)
      file.write(line)
    },
  }
}
