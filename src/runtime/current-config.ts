/**
 * `runtime/current_config.toml` in the data folder: the configuration in force, with the addresses that were really bound. For
 * scripts and test harnesses that were written for Apache's server: they wait for the file, then read it. Nothing else hangs on
 * it: where it cannot be written (a full disk, a folder of another user), that is told and the edge goes on.
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toEdgeError } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { formatConfig } from './config/load.ts'
import type { Config } from './config/schema.ts'

export interface BoundAddresses {
  /** `host:port`, or empty when it does not listen. */
  address(name: 'tcp' | 'http' | 'websocket' | 'webtransport' | 'quic'): string
}

/** What an earlier process has left says nothing of this one, which may not even come to listen. */
export function removeCurrentConfig(dataPath: string, logger: Logger): void {
  const file = fileIn(dataPath)
  attempt(file, logger, () => rmSync(file, { force: true }))
}

export interface CurrentConfig {
  readonly dataPath: string
  readonly config: Config
  readonly listeners: BoundAddresses
  readonly logger: Logger
}

/** Whole or not at all: whoever waits for the file reads it at once. */
export function writeCurrentConfig({ dataPath, config, listeners, logger }: CurrentConfig): void {
  const bound = Object.fromEntries(
    (['tcp', 'http', 'websocket', 'webtransport', 'quic'] as const).map((name) => {
      const address = listeners.address(name) || config[name].address
      return [name, { ...config[name], address }]
    }),
  )
  const file = fileIn(dataPath)
  attempt(file, logger, () => {
    mkdirSync(join(dataPath, 'runtime'), { recursive: true })
    writeFileSync(`${file}.partial`, formatConfig({ ...config, ...bound } as Config))
    renameSync(`${file}.partial`, file)
  })
}

function attempt(file: string, logger: Logger, change: () => void): void {
  try {
    change()
  } catch (error) {
    logger.warn('edge.current_config.failed', { path: file, reason: toEdgeError(error).message })
  }
}

const fileIn = (dataPath: string): string => join(dataPath, 'runtime', 'current_config.toml')
