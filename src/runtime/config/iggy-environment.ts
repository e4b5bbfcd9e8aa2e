/**
 * The environment of Apache Iggy's server, for scripts and images that were made for it: `IGGY_` and the path of a key in
 * its configuration, with `_` for every dot. Pure.
 *
 * What means the same here is taken; what Apache's server knows and we do not is named, so that nobody believes in a
 * setting without effect. What is not recognised at all is named too: it may be a typing error. A value that neither can
 * read stops the start of both.
 */
import { boolean, type Setting, type SettingsTable } from '../../setting.ts'
import { parseByteText, parseDurationWithUnit, UNLIMITED } from '../amount-text.ts'
import { cronEvery } from './cron-text.ts'
import { ENVIRONMENT_PREFIX } from './load.ts'
import { LISTS, SECTIONS } from './schema.ts'
import { parseSetting } from './value.ts'

/** Variables of clients, of the root user and of the process: no settings. */
const OTHER_VARIABLES: ReadonlySet<string> = new Set([
  'IGGY_URL',
  'IGGY_USERNAME',
  'IGGY_PASSWORD',
  'IGGY_HOME',
  'IGGY_ROOT_USERNAME',
  'IGGY_ROOT_PASSWORD',
  'IGGY_CONFIG_PATH',
  'IGGY_CI_BUILD',
])
/** Of other programs of Apache's that may share the environment. */
const OTHER_PROGRAMS = /^IGGY_(CONNECTORS|MCP|TEST)_/

/** Their path here, where it is not the same words. */
const RENAMED: Readonly<Record<string, string>> = {
  IGGY_SYSTEM_PATH: 'system.path',
  IGGY_SYSTEM_LOGGING_LEVEL: 'logging.level',
  IGGY_SYSTEM_LOGGING_MAX_FILE_SIZE: 'logging.max_file_size',
  IGGY_SYSTEM_LOGGING_MAX_TOTAL_SIZE: 'logging.max_total_size',
  IGGY_SYSTEM_LOGGING_RETENTION: 'logging.retention',
  IGGY_SYSTEM_SEGMENT_SIZE: 'log.segment_size',
  IGGY_SYSTEM_ENCRYPTION_ENABLED: 'log.encryption.enabled',
  IGGY_SYSTEM_ENCRYPTION_KEY: 'log.encryption.key',
  IGGY_SYSTEM_MESSAGE_DEDUPLICATION_ENABLED: 'message_deduplication.enabled',
  IGGY_SYSTEM_MESSAGE_DEDUPLICATION_MAX_ENTRIES: 'message_deduplication.max_entries',
  IGGY_SYSTEM_MESSAGE_DEDUPLICATION_EXPIRY: 'message_deduplication.expiry',
  IGGY_TCP_TLS_ENABLED: 'tcp.tls_enabled',
  IGGY_TCP_TLS_CERT_FILE: 'tcp.tls_cert_file',
  IGGY_TCP_TLS_KEY_FILE: 'tcp.tls_key_file',
  IGGY_QUIC_CERTIFICATE_SELF_SIGNED: 'quic.tls_self_signed',
  IGGY_QUIC_CERTIFICATE_CERT_FILE: 'quic.tls_cert_file',
  IGGY_QUIC_CERTIFICATE_KEY_FILE: 'quic.tls_key_file',
  IGGY_HTTP_JWT_ENCODING_SECRET: 'http.jwt.secret',
  IGGY_SYSTEM_PARTITION_ENFORCE_FSYNC: 'log.default_durability',
  IGGY_DATA_MAINTENANCE_MESSAGES_INTERVAL: 'retention.schedule',
  IGGY_SYSTEM_LOGGING_FILE_ENABLED: 'logging.file',
}

/** Their words for a value that are not ours. */
const RENAMED_VALUES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'logging.level': { trace: 'debug', off: 'error', none: 'error' },
  // Not `false: 'buffered'`: it stands in the file that Apache's server comes with, and asks for nothing.
  'log.default_durability': { true: 'durable' },
}

/** Whoever says how log files are kept wants some. Here one key names the file, in the folder of the second one. */
const LOG_FILE_VARIABLES = [
  'IGGY_SYSTEM_LOGGING_FILE_ENABLED',
  'IGGY_SYSTEM_LOGGING_PATH',
  'IGGY_SYSTEM_LOGGING_MAX_FILE_SIZE',
  'IGGY_SYSTEM_LOGGING_MAX_TOTAL_SIZE',
  'IGGY_SYSTEM_LOGGING_RETENTION',
] as const
const [LOG_FILE_SWITCH, LOG_FILE_FOLDER] = LOG_FILE_VARIABLES
const APACHES_LOG_FOLDER = 'logs'
/** By this name collectors know it. */
const APACHES_LOG_NAME = 'iggy-server.log'

/** Here a cron expression. */
const INTERVALS: ReadonlySet<string> = new Set(['IGGY_DATA_MAINTENANCE_MESSAGES_INTERVAL'])

/** What is so here anyway. */
const AS_IT_IS: Readonly<Record<string, string>> = {
  IGGY_CLUSTER_ENABLED: 'false',
  IGGY_DATA_MAINTENANCE_MESSAGES_CLEANER_ENABLED: 'true',
  IGGY_HTTP_JWT_ALGORITHM: 'hs256',
  IGGY_HTTP_JWT_USE_BASE64_SECRET: 'false',
  IGGY_HTTP_WEB_UI: 'false',
  IGGY_PERSONAL_ACCESS_TOKEN_CLEANER_ENABLED: 'true',
  IGGY_SYSTEM_PARTITION_VALIDATE_CHECKSUM: 'true',
  IGGY_SYSTEM_RECOVERY_RECREATE_MISSING_STATE: 'false',
  IGGY_SYSTEM_SEGMENT_ARCHIVE_EXPIRED: 'false',
  IGGY_TELEMETRY_ENABLED: 'false',
  IGGY_WEBSOCKET_ACCEPT_UNMASKED_FRAMES: 'false',
}

const ADDRESSES = ['tcp.address', 'http.address', 'websocket.address', 'quic.address'] as const
/**
 * Where somebody places Apache's listeners, several servers may run side by side: theirs shares ports with whoever
 * reserved them, and has no WebTransport on a port of its own.
 */
const STAND_IN: Readonly<Record<string, string>> = {
  EDGE_SYSTEM__REUSE_PORT: 'true',
  EDGE_WEBTRANSPORT__ENABLED: 'false',
}

/** What the variables of each certificate begin with. Of HTTPS none is made, there as here. */
const CERTIFICATES = [
  { ours: 'EDGE_TCP__TLS', theirs: 'IGGY_TCP_TLS', isAlwaysOn: false },
  { ours: 'EDGE_WEBSOCKET__TLS', theirs: 'IGGY_WEBSOCKET_TLS', isAlwaysOn: false },
  { ours: 'EDGE_QUIC__TLS', theirs: 'IGGY_QUIC_CERTIFICATE', isAlwaysOn: true },
] as const

export interface IggyEnvironment {
  /** As variables of our own, `EDGE_TCP__ADDRESS`, with values in our words. */
  readonly variables: Readonly<Record<string, string>>
  /** Variables that have no effect here. */
  readonly ignored: readonly string[]
  /** Those among them whose value is beyond what the setting takes here. */
  readonly unfit: readonly WrongValue[]
  /** Values that Apache's server cannot read either. */
  readonly unreadable: readonly WrongValue[]
}

export interface WrongValue {
  readonly variable: string
  /** Of the setting here. */
  readonly path: string
  /** What was found and expected. */
  readonly problem: string
}

type Environment = Readonly<Record<string, string | undefined>>

/** @param isFile whether a path names a file: Apache's server makes a certificate where there is none. */
export function readIggyEnvironment(
  environment: Environment,
  isFile: (path: string) => boolean = () => true,
): IggyEnvironment {
  const given = settingsIn(environment)
  const paths = knownPaths()
  const variables: Record<string, string> = {}
  const [ignored, unfit, unreadable]: [string[], WrongValue[], WrongValue[]] = [[], [], []]
  for (const [variable, text] of Object.entries(given)) {
    if (AS_IT_IS[variable] === text.toLowerCase() || variable === LOG_FILE_FOLDER) continue
    const path = RENAMED[variable] ?? paths.get(variable) ?? pathInList(variable)
    const value = path === undefined ? undefined : ourValue(variable, path, text)
    if (path === undefined || value === undefined) ignored.push(variable)
    else if ('value' in value) variables[ourVariable(path)] = value.value
    else {
      const list = value.isReadable ? unfit : unreadable
      list.push({ variable, path, problem: `found ${JSON.stringify(text)}, expected ${value.expected}` })
    }
  }
  takeLogFile(variables, given)
  adaptQuic(variables)
  const missing = adaptCertificates(variables, isFile).filter((variable) => given[variable] !== undefined)
  ignored.push(...missing, ...unfit.map(({ variable }) => variable))
  const isStandIn = ADDRESSES.some((path) => variables[ourVariable(path)] !== undefined)
  const all = isStandIn ? { ...STAND_IN, ...variables } : variables
  return { variables: all, ignored: ignored.sort(), unfit, unreadable }
}

/** An empty variable is none there as well. */
function settingsIn(environment: Environment): Readonly<Record<string, string>> {
  const isSetting = (name: string) =>
    name.startsWith('IGGY_') && !OTHER_VARIABLES.has(name) && !OTHER_PROGRAMS.test(name)
  const named = Object.entries(environment).filter(([name]) => isSetting(name))
  const trimmed = named.map(([name, text = '']) => [name, text.trim()] as const)
  return Object.fromEntries(trimmed.filter(([, text]) => text !== ''))
}

/** The switch alone says nothing of where, so the file's name is put together here. */
function takeLogFile(variables: Record<string, string>, given: Environment): void {
  const file = ourVariable('logging.file')
  const isOn = switchOf(variables[file] ?? '')
  delete variables[file]
  const isAsked = LOG_FILE_VARIABLES.some((each) => each !== LOG_FILE_SWITCH && given[each] !== undefined)
  if (isOn ?? isAsked) variables[file] = `${given[LOG_FILE_FOLDER] ?? APACHES_LOG_FOLDER}/${APACHES_LOG_NAME}`
}

/** @returns undefined when it says neither on nor off. */
function switchOf(text: string): boolean | undefined {
  const parsed = parseSetting(boolean(false, ''), text.trim().toLowerCase())
  return 'value' in parsed ? parsed.value === true : undefined
}

/** There plain QUIC is on unless it is turned off, and its own certificate wins over files, which are in the sample file. */
function adaptQuic(variables: Record<string, string>): void {
  if (variables.EDGE_QUIC__ADDRESS !== undefined) variables.EDGE_QUIC__ENABLED ??= 'true'
  if (variables.EDGE_QUIC__TLS_SELF_SIGNED?.toLowerCase() !== 'true') return
  delete variables.EDGE_QUIC__TLS_CERT_FILE
  delete variables.EDGE_QUIC__TLS_KEY_FILE
}

/**
 * There a listener with TLS takes no plain connections, and where the file of its certificate is missing it makes one,
 * unless `self_signed` is turned off; for plain QUIC too, where files win over that here.
 *
 * @returns their variables for the files that are not there.
 */
function adaptCertificates(variables: Record<string, string>, isFile: (path: string) => boolean): readonly string[] {
  if (switchOf(variables.EDGE_TCP__TLS_ENABLED ?? '') === true) variables.EDGE_TCP__TLS_REQUIRED = 'true'
  return CERTIFICATES.flatMap(({ ours, theirs, isAlwaysOn }) => {
    const file = variables[`${ours}_CERT_FILE`] ?? ''
    const isWanted = isAlwaysOn ? file !== '' : switchOf(variables[`${ours}_ENABLED`] ?? '') === true
    const mayBeMade = switchOf(variables[`${ours}_SELF_SIGNED`] ?? '') !== false
    if (!isWanted || !mayBeMade || (file !== '' && isFile(file))) return []
    variables[`${ours}_SELF_SIGNED`] = 'true'
    delete variables[`${ours}_CERT_FILE`]
    delete variables[`${ours}_KEY_FILE`]
    return [`${theirs}_CERT_FILE`, `${theirs}_KEY_FILE`]
  })
}

export const ourVariable = (path: string): string => `${ENVIRONMENT_PREFIX}${path.replaceAll('.', '__').toUpperCase()}`

type OurValue = { readonly value: string } | { readonly expected: string; readonly isReadable: boolean }

/** @returns undefined for a word that asks for nothing here. */
function ourValue(variable: string, path: string, text: string): OurValue | undefined {
  if (variable === LOG_FILE_SWITCH) return switchOf(text) === undefined ? NO_SWITCH : { value: text }
  if (INTERVALS.has(variable)) return cronOf(text)
  const setting = settingAt(path)
  if (setting === undefined) return undefined
  const value = inOurWords(path, setting, text)
  const parsed = parseSetting(setting, value)
  if ('value' in parsed) return { value }
  return setting.kind === 'choice' ? undefined : { expected: parsed.expected, isReadable: isReadable(setting, text) }
}

const NO_SWITCH: OurValue = { expected: 'true or false', isReadable: false }

/** Whether Apache's server would take it: it may mean what is not there here, such as a limit beyond ours. */
function isReadable({ kind }: Setting, text: string): boolean {
  if (kind === 'duration') return parseDurationWithUnit(text) !== undefined
  if (kind === 'size') return parseByteText(text) !== undefined
  return kind === 'integer' && /^\d+$/.test(text)
}

/** What Apache's server reads as none is none here. */
function cronOf(text: string): OurValue {
  const us = parseDurationWithUnit(text)
  if (us !== undefined && us !== 0n && us !== UNLIMITED) return { value: cronEvery(Number(us / 1000n)) }
  return { expected: 'an interval such as "1 m"', isReadable: us !== undefined }
}

/**
 * Iggy writes durations as "1h 30m" and sizes as "1.5 GB", and has words for none. A listener that somebody turns off with
 * "False" is off.
 */
function inOurWords(path: string, setting: Setting, text: string): string {
  if (setting.kind === 'duration') {
    const us = parseDurationWithUnit(text)
    return us === undefined ? text : `${us / 1000n} ms`
  }
  if (setting.kind === 'boolean') return text.toLowerCase()
  if (setting.kind === 'size' || setting.kind === 'auto-size') return parseByteText(text)?.toString() ?? text
  // A list is `["GET", "POST"]` there.
  if (setting.kind === 'texts') return text.replace(/^\[(.*)\]$/, '$1').replaceAll('"', '')
  return RENAMED_VALUES[path]?.[text.toLowerCase()] ?? text
}

function settingAt(path: string): Setting | undefined {
  const dot = path.lastIndexOf('.')
  const sections: Readonly<Record<string, SettingsTable>> = { ...SECTIONS, ...LISTS }
  // The third upstream has the settings of all: `sync.upstreams.2.name`.
  return sections[path.slice(0, dot).replace(/\.\d+$/, '')]?.[path.slice(dot + 1)]
}

/** `IGGY_HTTP_JWT_TRUSTED_ISSUERS_0_ISSUER` is `http.jwt.trusted_issuers.0.issuer`. */
function pathInList(variable: string): string | undefined {
  for (const [list, table] of Object.entries<SettingsTable>(LISTS)) {
    const prefix = `IGGY_${list.replaceAll('.', '_').toUpperCase()}_`
    if (!variable.startsWith(prefix)) continue
    const [, index, key] = /^(\d{1,3})_(\w+)$/.exec(variable.slice(prefix.length).toLowerCase()) ?? []
    if (index !== undefined && key !== undefined && Object.hasOwn(table, key)) return `${list}.${index}.${key}`
  }
  return undefined
}

/** `http.cors.enabled` is `IGGY_HTTP_CORS_ENABLED`: dots and underscores look alike there. */
function knownPaths(): ReadonlyMap<string, string> {
  const entries = Object.entries<SettingsTable>(SECTIONS).flatMap(([section, table]) =>
    Object.keys(table).map((key): [string, string] => {
      const path = `${section}.${key}`
      return [`IGGY_${path.replaceAll('.', '_').toUpperCase()}`, path]
    }),
  )
  return new Map(entries)
}
