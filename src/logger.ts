import { type DestinationStream, pino } from 'pino'

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

/** JSON lines on stderr (or `destination`), written synchronously: a worker transport would cost 5 MB. */
export function createLogger(level: LogLevel, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
  }
  const sink = pino(options, destination ?? pino.destination({ dest: 2, sync: true }))
  const write = (name: LogLevel) => (event: string, fields?: LogFields) => sink[name]({ event, ...plain(fields) })
  return { error: write('error'), warn: write('warn'), info: write('info'), debug: write('debug') }
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
