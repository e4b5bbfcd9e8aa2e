/** Finds the configuration that the words of a command mean. */
import { existsSync, statSync } from 'node:fs'
import { EdgeError, messageOf, systemCodeOf } from '../../errors.ts'
import { readFileBytes } from '../../file-kind.ts'
import { ourVariable, readIggyEnvironment, type WrongValue } from '../config/iggy-environment.ts'
import { type IggyFile, readIggyFile } from '../config/iggy-file.ts'
import { type ConfigSources, configInvalid, firstWord, type ReadConfig, readConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { parseAddress } from '../config/value.ts'
import { findConfigProblems } from '../config-problems.ts'
import { isLoopback } from '../exposure.ts'
import type { CommandContext } from './command.ts'
import type { Values } from './grammar.ts'

/** Where a packaged installation keeps it; read when `--config` names none. */
const DEFAULT_FILES = ['/etc/iggy-edge/edge.toml']

const NO_IGGY_FILE: IggyFile = { variables: {}, paths: new Map() }
const LISTENERS = ['tcp', 'websocket', 'http', 'webtransport', 'quic'] as const

export interface FoundConfiguration {
  readonly config: Config
  /** Variables, and keys in the file, of Apache's server that were set and have no effect here. */
  readonly ignoredVariables: readonly string[]
  /** Why those of them have none that a setting here answers to. */
  readonly unfitValues: readonly string[]
  /** The file that was read, as it was named; null when there was none. */
  readonly file: string | null
  /** Secrets in a file that everybody on this machine may read. */
  readonly openSecrets: readonly string[]
}

/** @throws EDGE_CONFIG_INVALID with all problems at once. */
export function configurationOf(values: Values, context: Pick<CommandContext, 'environment'>): FoundConfiguration {
  const own = values.text('config')
  const apaches = own === undefined ? context.environment.IGGY_CONFIG_PATH : undefined
  const iggyFile = apaches === undefined ? NO_IGGY_FILE : readIggyFile(readConfigFile(apaches))
  const iggy = readIggyEnvironment({ ...iggyFile.variables, ...context.environment }, existsSync)
  const asWritten = (variable: string) => nameOf(variable, iggyFile, context.environment)
  const sentenceOf = ({ variable, problem }: WrongValue) => `${asWritten(variable)}: ${problem}`
  // What is set in our own words wins.
  const environment = { ...iggy.variables, ...context.environment }
  const data = values.text('data')
  const flags = data === undefined ? {} : { 'system.path': data }
  const file = apaches === undefined ? ownFile(own) : null
  const read = withUnreadable(readConfig({ file, environment, flags }), iggy.unreadable, sentenceOf)
  const found = {
    ignoredVariables: iggy.ignored.map(asWritten),
    unfitValues: iggy.unfit.map(sentenceOf),
    file: file?.name ?? apaches ?? null,
    openSecrets: file !== null && isOpenToAll(file.name) ? read.secretsInFile : [],
  }
  if (!values.has('dev')) return { ...found, config: soundConfig(read, read.config) }
  // What the operator sets by hand is not taken back by --dev.
  const isSet = (path: string) => environment[ourVariable(path)] !== undefined
  const loopback = Object.fromEntries(loopbackAddresses(read.config).filter(([path]) => !isSet(path)))
  const { config } = readConfig({ file, environment, flags: { ...flags, ...loopback } })
  return { ...found, config: soundConfig(read, config) }
}

function withUnreadable(
  read: ReadConfig,
  unreadable: readonly WrongValue[],
  sentenceOf: (wrong: WrongValue) => string,
): ReadConfig {
  return {
    ...read,
    problems: [...read.problems, ...unreadable.map(sentenceOf)],
    misread: new Set([...read.misread, ...unreadable.map(({ path }) => firstWord(path))]),
  }
}

/** All in one go: what does not go together need not wait until other keys are mended. */
function soundConfig({ problems, misread }: ReadConfig, config: Config): Config {
  if (problems.length > 0) throw configInvalid([...problems, ...findConfigProblems(config, misread)])
  return config
}

/** As the operator wrote it: the environment wins over the file. */
function nameOf(variable: string, file: IggyFile, environment: CommandContext['environment']): string {
  return environment[variable] === undefined ? (file.paths.get(variable) ?? variable) : variable
}

/** The listeners that other machines could reach, by path, moved to this machine; their ports stay as configured. */
function loopbackAddresses(config: Config): readonly (readonly [string, string])[] {
  return LISTENERS.flatMap((name) => {
    const address = parseAddress(config[name].address)
    if (address === null || isLoopback(address.host)) return []
    return [[`${name}.address`, `127.0.0.1:${address.port}`] as const]
  })
}

function ownFile(name: string | undefined): ConfigSources['file'] {
  const found = name ?? DEFAULT_FILES.find((each) => existsSync(each))
  return found === undefined ? null : readConfigFile(found)
}

function readConfigFile(name: string): { name: string; text: string } {
  try {
    return { name, text: readFileBytes(name).toString('utf8') }
  } catch (error) {
    const reason = messageOf(error)
    throw new EdgeError('EDGE_CONFIG_INVALID', `configuration file ${name} cannot be read: ${reason}`, {
      cause: error,
      details: { code: systemCodeOf(error) },
    })
  }
}

const READ_BY_OTHERS = 0o004

function isOpenToAll(file: string): boolean {
  const mode = statSync(file, { throwIfNoEntry: false })?.mode ?? 0
  return (mode & READ_BY_OTHERS) !== 0
}
