/**
 * The command line's grammar: a table of commands in, the chosen command with its values out. Pure.
 *
 * Every argument has a name and may be given by place (`topic create orders events 4`) or by name
 * (`topic create --stream orders events --partitions 4`): what is named no longer waits at its place. So both the
 * official command line's form and the one that guides print work, with one declaration.
 */
import { EdgeError } from '../../errors.ts'
import { nearestWords } from './nearest-word.ts'

export interface Argument {
  /** Option name without dashes; shown in capitals where it stands by place. */
  readonly name: string
  readonly summary: string
  /** Further option names: `m` is `-m`, longer ones get two dashes. */
  readonly aliases?: readonly string[]
  /** By place, in the order of declaration; only ones of this kind may be given without a name. */
  readonly isPositional?: boolean
  readonly isRequired?: boolean
  /** A switch: present or not, no value. */
  readonly isFlag?: boolean
  /** The last positional takes all that is left; an option may be repeated. */
  readonly isVariadic?: boolean
  /** Given this option, the positional of that name is no longer waited for. */
  readonly insteadOf?: string
}

export interface CommandSpec {
  /** Words that choose it: `['topic', 'create']`. */
  readonly path: readonly string[]
  /** Other words that choose it: `[['topic', 'stats']]`. */
  readonly aliases?: readonly (readonly string[])[]
  readonly summary: string
  readonly arguments: readonly Argument[]
  /** Options it shares with other commands, such as the server's address; they may also stand before the command. */
  readonly common?: readonly Argument[]
}

export class Values {
  readonly #values: ReadonlyMap<string, readonly string[]>
  constructor(values: ReadonlyMap<string, readonly string[]>) {
    this.#values = values
  }

  text(name: string): string | undefined {
    return this.#values.get(name)?.at(-1)
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? []
  }

  has(name: string): boolean {
    return this.#values.has(name)
  }

  /** @throws EDGE_CONFIG_INVALID naming the argument. */
  required(name: string): string {
    const value = this.text(name)
    if (value === undefined) throw usageError(`${name} is missing`)
    return value
  }

  integer(name: string, fallback: number, bounds: { min: number; max: number }): number {
    const value = this.text(name)
    if (value === undefined) return fallback
    const number = Number(value)
    if (/^\d+$/.test(value) && number >= bounds.min && number <= bounds.max) return number
    throw usageError(`${name}: found "${value}", expected a whole number from ${bounds.min} to ${bounds.max}`)
  }

  /** One of a few words. */
  choice<const C extends string>(name: string, fallback: C, choices: readonly C[]): C {
    const value = this.text(name)
    if (value === undefined) return fallback
    const found = choices.find((each) => each === value)
    if (found === undefined) throw usageError(`${name}: found "${value}", expected ${choices.join(', ')}`)
    return found
  }

  /** Exact whole number, for offsets and times. */
  bigint(name: string, fallback: bigint): bigint {
    const value = this.text(name)
    if (value === undefined) return fallback
    if (/^\d{1,20}$/.test(value)) return BigInt(value)
    throw usageError(`${name}: found "${value}", expected a whole number`)
  }
}

export interface Parsed<C extends CommandSpec> {
  readonly command: C
  readonly values: Values
}

/** What to print when the words choose no command, or help was asked for. */
export interface HelpWanted {
  readonly help: string
  /** False when help was asked for; true when the words were wrong. */
  readonly isError: boolean
}

/** The words are wrong, not the configuration: `isUsageError` tells them apart. */
export const usageError = (text: string): EdgeError =>
  new EdgeError('EDGE_CONFIG_INVALID', text, { details: { isUsage: true } })

export const isUsageError = (error: EdgeError): boolean => error.details.isUsage === true

/** Asked for alone, before there is a command. */
const VERSION: Argument = { name: 'version', isFlag: true, summary: 'Version of this program.' }

/** @throws EDGE_CONFIG_INVALID with one readable line when the words fit the command but the arguments do not. */
export function parseCommandLine<C extends CommandSpec>(
  words: readonly string[],
  commands: readonly C[],
  common: readonly Argument[],
): Parsed<C> | HelpWanted {
  // `help topic create` and `topic create --help` are the same question.
  if (words[0] === 'help') return parseCommandLine([...words.slice(1), '--help'], commands, common)
  const chosen = choose(words, commands, common)
  const options = words.includes('--') ? words.slice(0, words.indexOf('--')) : words
  const isHelp = options.includes('--help') || options.includes('-h')
  if (chosen === null) {
    const named = words.filter((word) => !word.startsWith('-'))
    const overview = formatOverview(named, commands)
    if (isHelp || words.length === 0) return { help: overview, isError: false }
    if (named.length > 0) return { help: overview, isError: true }
    const shared = [...common, ...commands.flatMap((each) => each.common ?? [])]
    const [option = ''] = words
    if (findArgument(option, shared) === undefined) throw unknownOption(option, [], [...shared, VERSION])
    return { help: `iggy-edge: no command beside ${option}\n${overview}`, isError: true }
  }
  const { command, before, rest } = chosen
  const shared = [...common, ...(command.common ?? [])]
  if (isHelp) return { help: formatHelp(command, shared), isError: false }
  const values = new Map<string, string[]>()
  // Before the command stand shared options only: `-u root user create ann secret -u inactive` means both.
  takeOptions(before, command, shared, values)
  const bare = takeOptions(rest, command, [...command.arguments, ...shared], values)
  placeBare(bare, command, values)
  const missing = command.arguments.find((each) => each.isRequired && !isSettled(each, command, values))
  if (missing !== undefined) throw usageError(`${shownName(missing)} is missing: ${usageLine(command)}`)
  return { command, values: new Values(values) }
}

interface Chosen<C> {
  readonly command: C
  /** Options that stood before the last word of the path. */
  readonly before: readonly string[]
  readonly rest: readonly string[]
}

function choose<C extends CommandSpec>(
  words: readonly string[],
  commands: readonly C[],
  common: readonly Argument[],
): Chosen<C> | null {
  let best: (Chosen<C> & { length: number }) | null = null
  for (const command of commands) {
    const shared = [...common, ...(command.common ?? [])]
    for (const path of [command.path, ...(command.aliases ?? [])]) {
      const parts = partAtPath(words, path, shared)
      if (parts !== null && path.length > (best?.length ?? 0)) best = { command, ...parts, length: path.length }
    }
  }
  return best
}

/** Options may stand before the command, as in `iggy --username x stream list`: their values are no command words. */
function partAtPath(
  words: readonly string[],
  path: readonly string[],
  shared: readonly Argument[],
): { before: string[]; rest: string[] } | null {
  const before: string[] = []
  let matched = 0
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? ''
    if (!word.startsWith('-')) {
      if (word !== path[matched]) return null
      matched++
      if (matched === path.length) return { before, rest: words.slice(i + 1) }
      continue
    }
    before.push(word)
    const argument = findArgument(word, shared)
    const takesNext = argument !== undefined && argument.isFlag !== true && !word.includes('=')
    if (takesNext && i + 1 < words.length) before.push(words[++i] ?? '')
  }
  return null
}

function findArgument(word: string, known: readonly Argument[]): Argument | undefined {
  const equals = word.indexOf('=')
  const name = word.slice(word.startsWith('--') ? 2 : 1, equals < 0 ? undefined : equals)
  return known.find((each) => each.name === name || each.aliases?.includes(name))
}

/** Reads options into `values`. @returns the words that belong to none. */
function takeOptions(
  words: readonly string[],
  command: CommandSpec,
  known: readonly Argument[],
  values: Map<string, string[]>,
): string[] {
  const bare: string[] = []
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? ''
    if (word === '--') return [...bare, ...words.slice(i + 1)]
    if (!word.startsWith('-') || word === '-') {
      bare.push(word)
      continue
    }
    const argument = findArgument(word, known)
    if (argument === undefined) throw unknownOption(word, command.path, known)
    const equals = word.indexOf('=')
    if (argument.isFlag) {
      if (isSwitchedOn(word, equals)) values.set(argument.name, ['true'])
    } else {
      const value = equals >= 0 ? word.slice(equals + 1) : valueBehind(word, words[++i])
      values.set(argument.name, [...(values.get(argument.name) ?? []), value])
    }
  }
  return bare
}

/** `--fresh` and `--fresh=true`; `--fresh=false` must not delete anything. */
function isSwitchedOn(word: string, equals: number): boolean {
  const value = equals < 0 ? 'true' : word.slice(equals + 1)
  if (value === 'true' || value === 'false') return value === 'true'
  throw usageError(`${word.slice(0, equals)}: found "${value}", expected no value, true or false`)
}

function unknownOption(word: string, path: readonly string[], known: readonly Argument[]): EdgeError {
  const given = word.replace(/^--?/, '').replace(/=.*/s, '')
  const names = known.flatMap(({ name, aliases = [] }) => [name, ...aliases])
  const nearest = nearestWords(
    [given],
    [...names, 'help'].map((name) => [name]),
  )
  const advice =
    nearest === undefined
      ? `see ${['iggy-edge', ...path, '--help'].join(' ')}`
      : `did you mean \`--${nearest.join()}\`?`
  return usageError(`unknown option ${word}; ${advice}`)
}

/** An option whose value was forgotten must not swallow the next one; only `-`, standard input or output, is a value. */
function valueBehind(option: string, next: string | undefined): string {
  if (next === undefined) throw usageError(`${option} needs a value`)
  if (!next.startsWith('-') || next === '-') return next
  throw usageError(`${option} needs a value, found ${next}; a value that begins with a dash: ${option}=${next}`)
}

function placeBare(bare: string[], command: CommandSpec, values: Map<string, string[]>): void {
  for (const argument of command.arguments) {
    if (!argument.isPositional || bare.length === 0 || isSettled(argument, command, values)) continue
    values.set(argument.name, argument.isVariadic ? bare.splice(0) : bare.splice(0, 1))
  }
  if (bare.length > 0) throw usageError(`unexpected "${bare[0]}": ${usageLine(command)}`)
}

function isSettled({ name }: Argument, command: CommandSpec, values: ReadonlyMap<string, unknown>): boolean {
  return values.has(name) || command.arguments.some((each) => each.insteadOf === name && values.has(each.name))
}

const usageLine = (command: CommandSpec): string => `${formOf(command)}; --help tells more`

/** By place it is shown in capitals, as in the form; what has only a name, by that. */
const shownName = ({ name, isPositional }: Argument): string => (isPositional ? name.toUpperCase() : `--${name}`)

const formOf = (command: CommandSpec): string => ['iggy-edge', ...command.path, usageOf(command)].join(' ').trimEnd()

/** More options than that are left to `--help`. */
const SHOWN_OPTIONS = 3

/** What stands behind the command's path: what has a place, what has to be named, and a few of the others. */
export function usageOf({ arguments: all }: CommandSpec): string {
  const options = all.filter((each) => !each.isPositional)
  const isLong = options.length > SHOWN_OPTIONS
  const shown = options.filter((each) => each.isRequired || !isLong)
  return [
    ...[...all.filter((each) => each.isPositional), ...shown].map(formOfArgument),
    ...(isLong ? ['[OPTIONS]'] : []),
  ].join(' ')
}

function formOfArgument(argument: Argument): string {
  const { name, isPositional, isVariadic, isFlag, isRequired } = argument
  const named = `--${name}${isFlag ? '' : ' VALUE'}`
  const form = isPositional ? `${name.toUpperCase()}${isVariadic ? '...' : ''}` : named
  return isRequired ? form : `[${form}]`
}

const HEAD_WIDTH = 36

export function formatHelp(command: CommandSpec, common: readonly Argument[]): string {
  const lines = [formOf(command), '', command.summary, '']
  const row = (each: Argument) => {
    const names = [each.name, ...(each.aliases ?? [])].map((name) => (name.length === 1 ? `-${name}` : `--${name}`))
    const head = `${names.join(', ')}${each.isFlag ? '' : ' VALUE'}`
    // A longer head has a line of its own, so that the sentences stand below each other.
    return `  ${head.length > HEAD_WIDTH ? `${head}\n${' '.repeat(HEAD_WIDTH + 2)}` : head.padEnd(HEAD_WIDTH)} ${each.summary}`
  }
  return [
    ...lines,
    ...command.arguments.map(row),
    ...(common.length > 0 ? ['', 'Everywhere:', ...common.map(row)] : []),
  ].join('\n')
}

/**
 * The commands below `words`, or all; unknown words are named, with those that were meant, or with what the first of them
 * could go on with.
 */
export function formatOverview(words: readonly string[], commands: readonly CommandSpec[]): string {
  const below = commandsBelow(words, commands)
  const isUnknown = below.length === 0
  const nearest = isUnknown ? nearestWords(words, commands.flatMap(pathsOf)) : undefined
  if (nearest !== undefined) {
    const given = words.slice(0, nearest.length).join(' ')
    return `iggy-edge: unknown command "${given}"; did you mean \`${nearest.join(' ')}\`?\n\niggy-edge --help shows all commands.`
  }
  const near = isUnknown ? commandsBelow(words.slice(0, 1), commands) : below
  const rows = words.length === 0 || near.length === 0 ? nounRows(commands) : near.map(commandRow)
  return [
    isUnknown ? `iggy-edge: unknown command "${words.join(' ')}"` : 'iggy-edge: commands',
    '',
    ...rows.map(([name, text]) => `  ${name.padEnd(24)} ${text}`),
    '',
    'iggy-edge COMMAND --help tells more.',
  ].join('\n')
}

function commandsBelow(words: readonly string[], commands: readonly CommandSpec[]): readonly CommandSpec[] {
  const begins = (path: readonly string[]) => words.every((word, i) => path[i] === word)
  return commands.filter((command) => pathsOf(command).some(begins))
}

const pathsOf = ({ path, aliases = [] }: CommandSpec): readonly (readonly string[])[] => [path, ...aliases]

const commandRow = ({ path, summary }: CommandSpec): readonly [string, string] => [path.join(' '), summary]

/** One line for each first word: its summary, or the words that may follow it. */
function nounRows(commands: readonly CommandSpec[]): (readonly [string, string])[] {
  const nouns = new Map<string, CommandSpec[]>()
  for (const command of commands) {
    const noun = command.path[0] ?? ''
    nouns.set(noun, [...(nouns.get(noun) ?? []), command])
  }
  return [...nouns].map(([noun, group]) => {
    const verbs = group.flatMap(({ path }) => path.slice(1))
    return [noun, verbs.length === 0 ? (group[0]?.summary ?? '') : verbs.join(' | ')]
  })
}
