/**
 * The command line's grammar: a table of commands in, the chosen command with its values out. Pure.
 *
 * Every argument has a name and may be given by place (`topic create orders events 4`) or by name
 * (`topic create --stream orders events --partitions 4`): what is named no longer waits at its place. So both the
 * official command line's form and the one that guides print work, with one declaration.
 */
import { EdgeError } from '../../errors.ts'

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
}

export interface CommandSpec {
  /** Words that choose it: `['topic', 'create']`. */
  readonly path: readonly string[]
  /** Other words that choose it: `[['topic', 'stats']]`. */
  readonly aliases?: readonly (readonly string[])[]
  readonly summary: string
  readonly arguments: readonly Argument[]
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

export const usageError = (text: string): EdgeError => new EdgeError('EDGE_CONFIG_INVALID', text)

/** @throws EDGE_CONFIG_INVALID with one readable line when the words fit the command but the arguments do not. */
export function parseCommandLine<C extends CommandSpec>(
  words: readonly string[],
  commands: readonly C[],
  common: readonly Argument[],
): Parsed<C> | HelpWanted {
  const chosen = choose(words, commands)
  const isHelp = words.includes('--help') || words.includes('-h')
  if (chosen === null) {
    const isError = !isHelp && words.length > 0 && words[0] !== 'help'
    return {
      help: formatOverview(
        words.filter((word) => !word.startsWith('-') && word !== 'help'),
        commands,
      ),
      isError,
    }
  }
  const { command, rest } = chosen
  if (isHelp) return { help: formatHelp(command, common), isError: false }
  return { command, values: new Values(takeArguments(rest, command, common)) }
}

function choose<C extends CommandSpec>(
  words: readonly string[],
  commands: readonly C[],
): { command: C; rest: string[] } | null {
  let best: { command: C; rest: string[]; length: number } | null = null
  for (const command of commands) {
    for (const path of [command.path, ...(command.aliases ?? [])]) {
      const rest = withoutPath(words, path)
      if (rest !== null && path.length > (best?.length ?? 0)) best = { command, rest, length: path.length }
    }
  }
  return best
}

/** Options may stand before the command, as in `iggy --username x stream list`: only bare words are matched. */
function withoutPath(words: readonly string[], path: readonly string[]): string[] | null {
  const rest: string[] = []
  let matched = 0
  for (const [index, word] of words.entries()) {
    if (matched < path.length && word === path[matched]) matched++
    else if (matched < path.length && !word.startsWith('-') && !words[index - 1]?.startsWith('-')) return null
    else rest.push(word)
  }
  return matched === path.length ? rest : null
}

function takeArguments(
  words: readonly string[],
  command: CommandSpec,
  common: readonly Argument[],
): Map<string, string[]> {
  const known = [...command.arguments, ...common]
  const values = new Map<string, string[]>()
  const bare: string[] = []
  let onlyBare = false
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? ''
    if (onlyBare || !word.startsWith('-') || word === '-') bare.push(word)
    else if (word === '--') onlyBare = true
    else {
      const equals = word.indexOf('=')
      const name = word.slice(word.startsWith('--') ? 2 : 1, equals < 0 ? undefined : equals)
      const argument = known.find((each) => each.name === name || each.aliases?.includes(name))
      if (argument === undefined)
        throw usageError(`unknown option ${word}; see iggy-edge ${command.path.join(' ')} --help`)
      if (argument.isFlag && equals < 0) values.set(argument.name, ['true'])
      else {
        const value = equals >= 0 ? word.slice(equals + 1) : words[++i]
        if (value === undefined) throw usageError(`${word} needs a value`)
        values.set(argument.name, [...(values.get(argument.name) ?? []), value])
      }
    }
  }
  placeBare(bare, command, values)
  const missing = command.arguments.find((each) => each.isRequired && !values.has(each.name))
  if (missing)
    throw usageError(
      `${missing.name.toUpperCase()} is missing: iggy-edge ${command.path.join(' ')} ${usageOf(command)}`,
    )
  return values
}

function placeBare(bare: string[], command: CommandSpec, values: Map<string, string[]>): void {
  for (const argument of command.arguments) {
    if (!argument.isPositional || values.has(argument.name) || bare.length === 0) continue
    values.set(argument.name, argument.isVariadic ? bare.splice(0) : bare.splice(0, 1))
  }
  if (bare.length > 0)
    throw usageError(`unexpected "${bare[0]}": iggy-edge ${command.path.join(' ')} ${usageOf(command)}`)
}

export function usageOf(command: CommandSpec): string {
  const places = command.arguments.filter((each) => each.isPositional)
  const words = places.map((each) => `${each.name.toUpperCase()}${each.isVariadic ? '...' : ''}`)
  return words.map((word, i) => (places[i]?.isRequired ? word : `[${word}]`)).join(' ')
}

export function formatHelp(command: CommandSpec, common: readonly Argument[]): string {
  const lines = [`iggy-edge ${command.path.join(' ')} ${usageOf(command)}`, '', command.summary, '']
  const row = (each: Argument) => {
    const names = [each.name, ...(each.aliases ?? [])].map((name) => (name.length === 1 ? `-${name}` : `--${name}`))
    return `  ${`${names.join(', ')}${each.isFlag ? '' : ' VALUE'}`.padEnd(36)} ${each.summary}`
  }
  return [
    ...lines,
    ...command.arguments.map(row),
    ...(common.length > 0 ? ['', 'Everywhere:', ...common.map(row)] : []),
  ].join('\n')
}

/** The commands below `words`, or all; unknown words are named. */
export function formatOverview(words: readonly string[], commands: readonly CommandSpec[]): string {
  const below = commands.filter((command) => words.every((word, i) => command.path[i] === word))
  const shown = below.length > 0 ? below : commands
  const title = below.length > 0 ? 'iggy-edge: commands' : `iggy-edge: unknown command "${words.join(' ')}"`
  return [
    title,
    '',
    ...shown.map((each) => `  ${each.path.join(' ').padEnd(24)} ${each.summary}`),
    '',
    'iggy-edge COMMAND --help tells more.',
  ].join('\n')
}
