/** Finds the configuration that the words of a command mean. */
import { existsSync, readFileSync } from 'node:fs'
import { EdgeError } from '../../errors.ts'
import { ourVariable, readIggyEnvironment } from '../config/iggy-environment.ts'
import { type ConfigSources, loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { parseAddress } from '../config/value.ts'
import { isLoopback } from '../exposure.ts'
import type { CommandContext } from './command.ts'
import type { Values } from './grammar.ts'

/** Where a packaged installation keeps it; read when `--config` names none. */
const DEFAULT_FILES = ['/etc/iggy-edge/edge.toml']

const LISTENERS = ['tcp', 'websocket', 'http', 'webtransport'] as const

export interface FoundConfiguration {
  readonly config: Config
  /** Variables of Apache's server that were set and have no effect here. */
  readonly ignoredVariables: readonly string[]
}

/** @throws EDGE_CONFIG_INVALID with all problems at once. */
export function configurationOf(values: Values, context: Pick<CommandContext, 'environment'>): FoundConfiguration {
  const iggy = readIggyEnvironment(context.environment)
  // What is set in our own words wins.
  const environment = { ...iggy.variables, ...context.environment }
  const data = values.text('data')
  const flags = data === undefined ? {} : { 'system.path': data }
  const file = fileOf(values.text('config') ?? environment.IGGY_CONFIG_PATH)
  const config = loadConfig({ file, environment, flags })
  if (!values.has('dev')) return { config, ignoredVariables: iggy.ignored }
  // What the operator sets by hand is not taken back by --dev.
  const isSet = (path: string) => environment[ourVariable(path)] !== undefined
  const loopback = Object.fromEntries(loopbackAddresses(config).filter(([path]) => !isSet(path)))
  return { config: loadConfig({ file, environment, flags: { ...flags, ...loopback } }), ignoredVariables: iggy.ignored }
}

/** The listeners that other machines could reach, by path, moved to this machine; their ports stay as configured. */
function loopbackAddresses(config: Config): readonly (readonly [string, string])[] {
  return LISTENERS.flatMap((name) => {
    const address = parseAddress(config[name].address)
    if (address === null || isLoopback(address.host)) return []
    return [[`${name}.address`, `127.0.0.1:${address.port}`] as const]
  })
}

function fileOf(name: string | undefined): ConfigSources['file'] {
  const found = name ?? DEFAULT_FILES.find((each) => existsSync(each))
  if (found === undefined) return null
  try {
    return { name: found, text: readFileSync(found, 'utf8') }
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new EdgeError('EDGE_CONFIG_INVALID', `configuration file ${found} cannot be read: ${reason}`, {
      cause: error,
    })
  }
}
