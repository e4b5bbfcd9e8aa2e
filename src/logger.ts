import { pino } from 'pino'
import { LineFolding } from './line-folding.ts'

export type LogLevel = 'error' | 'warn' | 'info' | 'debug'

/** Flat fields in `snake_case`: `stream_id`, `topic_id`, `partition_id`, `base_offset`, `size_bytes`, `error_code` ... */
export type LogFields = Readonly<Record<string, string | number | bigint | boolean | null | undefined>>

/**
 * Events, not prose: `event` is a dotted name (`log.segment.rolled`). `error` = data was lost or an operator must act,
 * `warn` = recovered by itself, `info` = lifecycle, `debug` = at most once per batch. No payloads, no secrets.
 */
export interface Logger {
  error(event: string, fields?: LogFields): void
  warn(event: string, fields?: LogFields): void
  info(event: string, fields?: LogFields): void
  debug(event: string, fields?: LogFields): void
}

/** Takes lines with their line feeds. Never throws: a line that cannot be kept is lost. */
export interface LineSink {
  write(line: string): void
}

/** How often lines that were left out are summed up, should no line of their event have told of them. */
const SUMMARY_INTERVAL_MS = 10 * 60_000

/** Lines that could not be written wait for the next one, up to this size; what comes then is lost. */
const MAX_HELD_BYTES = 64 * 1024

/**
 * JSON lines on stderr (or `destination`), written synchronously: a worker transport would cost 5 MB. Repeated events are
 * folded, except at `debug`, which is asked for: the next line that is written says how many were left out.
 */
export function createLogger(level: LogLevel, destination?: LineSink): Logger {
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  const sink = pino(options, destination ?? standardError())
  const folding = new LineFolding()
  const write =
    (name: Exclude<LogLevel, 'debug'>) =>
    (event: string, fields?: LogFields): void => {
      if (!sink.isLevelEnabled(name)) return
      const foldedCount = folding.take(event, performance.now())
      if (foldedCount === null) return
      sink[name]({ event, ...plain(fields), ...(foldedCount === 0 ? {} : { folded_count: foldedCount }) })
    }
  const sumUp = () => {
    for (const { event, count } of folding.drain())
      sink.warn({ event: 'logger.folded', of: event, folded_count: count })
  }
  setInterval(sumUp, SUMMARY_INTERVAL_MS).unref()
  return {
    error: write('error'),
    warn: write('warn'),
    info: write('info'),
    debug: (event, fields) => {
      if (sink.isLevelEnabled('debug')) sink.debug({ event, ...plain(fields) })
    },
  }
}

/** Standard error may be a file on a full disk: lines are lost then, but never the service for want of them. */
export function standardError(): LineSink {
  const stream = pino.destination({ dest: 2, sync: true, maxLength: MAX_HELD_BYTES })
  stream.on('error', () => {})
  return stream
}

export const silentLogger: Logger = { error() {}, warn() {}, info() {}, debug() {} }

/** JSON has no bigint: offsets become numbers where exact, else text. */
function plain(fields: LogFields = {}): Record<string, unknown> {
  const entries = Object.entries(fields).map(([name, value]) => {
    if (typeof value !== 'bigint') return [name, value]
    return [name, value <= Number.MAX_SAFE_INTEGER ? Number(value) : value.toString()]
  })
  return Object.fromEntries(entries)
}
