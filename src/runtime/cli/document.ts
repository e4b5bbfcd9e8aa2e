/** The command line as a document, from the table of commands. Pure. */
import type { Argument, CommandSpec } from './grammar.ts'
import { usageOf } from './grammar.ts'

/** @returns `docs/cli.md`. */
export function formatCommandReference(commands: readonly CommandSpec[]): string {
  const nouns = [...new Set(commands.map(({ path }) => path[0] ?? ''))]
  const lines = [
    '# Command line',
    '',
    'Generated from `src/runtime/cli/commands.ts` by `node scripts/docs.ts`; do not edit.',
    '',
    "Iggy's own command line and the one that guides print both work: every argument may stand at its place or be named, so",
    '`topic create orders order-events 4 none` and `topic create --stream orders order-events --partitions 4` mean the same.',
    'Where Iggy has a short word, it is taken too: `s l` is `stream list`. `--` ends the options.',
    'A value that begins with a dash is given with an equals sign: `--name=-x`.',
    '',
    'Exit codes: 0 done, 1 refused or damaged, 64 wrong words, 69 server not reached, 75 try again later, 78 wrong configuration.',
    '',
    ...sharedOptions(commands),
  ]
  for (const noun of nouns) {
    lines.push(`## ${noun}`, '')
    for (const command of commands.filter(({ path }) => path[0] === noun)) lines.push(...commandLines(command), '')
  }
  return `${lines.join('\n').trimEnd()}\n`
}

function sharedOptions(commands: readonly CommandSpec[]): string[] {
  const common = commands.find((each) => each.common !== undefined)?.common ?? []
  return ['## Options of every command that asks a server', '', ...optionTable(common), '']
}

function commandLines(command: CommandSpec): string[] {
  const { path, aliases = [], summary, common } = command
  const usage = `iggy-edge ${path.join(' ')} ${usageOf(command)}`.trimEnd()
  const others = aliases.map((each) => `\`${each.join(' ')}\``)
  return [
    `### ${path.join(' ')}`,
    '',
    `\`${usage}\``,
    '',
    `${summary}${common === undefined ? '' : ' Asks a server.'}${others.length === 0 ? '' : ` Also ${others.join(', ')}.`}`,
    ...(command.arguments.length === 0 ? [] : ['', ...optionTable(command.arguments)]),
  ]
}

function optionTable(options: readonly Argument[]): string[] {
  const rows = options.map((option) => {
    const names = [option.name, ...(option.aliases ?? [])].map((name) => `\`${name.length === 1 ? '-' : '--'}${name}\``)
    const place = option.isPositional ? `\`${option.name.toUpperCase()}\` or ` : ''
    return `| ${place}${names.join(', ')} | ${option.summary.replaceAll('|', '\\|')} |`
  })
  return ['| argument | |', '| --- | --- |', ...rows]
}
