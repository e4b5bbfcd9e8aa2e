/**
 * `runtime/current_config.toml` in the data folder: the configuration in force, with the addresses that were really bound. For
 * scripts and test harnesses that were written for Apache's server: they wait for the file, then read it.
 */
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatConfig } from './config/load.ts'
import type { Config } from './config/schema.ts'

export interface BoundAddresses {
  /** `host:port`, or empty when it does not listen. */
  address(name: 'tcp' | 'http' | 'websocket' | 'webtransport' | 'quic'): string
}

/** What an earlier process has left says nothing of this one, which may not even come to listen. */
export function removeCurrentConfig(dataPath: string): void {
  rmSync(fileIn(dataPath), { force: true })
}

/** Whole or not at all: whoever waits for the file reads it at once. */
export function writeCurrentConfig(dataPath: string, config: Config, listeners: BoundAddresses): void {
  const bound = Object.fromEntries(
    (['tcp', 'http', 'websocket', 'webtransport', 'quic'] as const).map((name) => {
      const address = listeners.address(name) || config[name].address
      return [name, { ...config[name], address }]
    }),
  )
  const file = fileIn(dataPath)
  mkdirSync(join(dataPath, 'runtime'), { recursive: true })
  writeFileSync(`${file}.partial`, formatConfig({ ...config, ...bound } as Config))
  renameSync(`${file}.partial`, file)
}

const fileIn = (dataPath: string): string => join(dataPath, 'runtime', 'current_config.toml')
