/** Arguments of a script: `--help` tells how to use it, and what it does not know ends it before it has done anything. */
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { messageOf } from '../src/errors.ts'

/** `EX_USAGE` of sysexits(3). */
const EXIT_USAGE = 64

/**
 * @param usage one line for each form of the command.
 * @param config of Node's `parseArgs`; an empty one for a script that takes no arguments.
 */
export function readArguments<const T extends ParseArgsConfig>(
  usage: string,
  config: T,
): ReturnType<typeof parseArgs<T>> {
  if (process.argv.slice(2).some((word) => word === '--help' || word === '-h')) {
    console.log(usage)
    process.exit(0)
  }
  try {
    return parseArgs(config)
  } catch (error) {
    refuseArguments(usage, messageOf(error))
  }
}

export function refuseArguments(usage: string, reason: string): never {
  console.error(`${reason}\n${usage}`)
  process.exit(EXIT_USAGE)
}
