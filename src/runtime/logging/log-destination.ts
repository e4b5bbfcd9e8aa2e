/** Where the lines of the log go: to standard error, to a file where the configuration names one, and into memory for a while. */
import { resolve } from 'node:path'
import { systemClock } from '../../clock.ts'
import { type LineSink, standardError } from '../../logger.ts'
import type { Config } from '../config/schema.ts'
import { LogFile } from './log-file.ts'

export function logDestination(config: Pick<Config, 'system' | 'logging'>, recent: LineSink): LineSink {
  const sinks = [standardError(), ...logFilesOf(config), recent]
  return {
    write(line) {
      for (const sink of sinks) sink.write(line)
    },
  }
}

function logFilesOf({ system, logging }: Pick<Config, 'system' | 'logging'>): readonly LogFile[] {
  if (logging.file === '') return []
  const dataPath = resolve(system.path)
  const limits = {
    maxFileBytes: logging.max_file_size,
    maxTotalBytes: logging.max_total_size,
    retentionMs: logging.retention,
  }
  const nowMs = () => Number(systemClock.wallUs() / 1000n)
  return [new LogFile({ ...limits, path: resolve(dataPath, logging.file), dataPath, nowMs })]
}
