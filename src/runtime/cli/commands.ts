/** All commands of the executable. Those that need much are loaded when they are chosen, so that `run` starts fast. */
import type { Command } from './command.ts'
import { run } from './run.ts'

const selfTest: Command = {
  path: ['self-test'],
  summary: 'Check that this build works on this machine: SQLite, disk, QUIC, HTTP.',
  arguments: [],
  run: async (_values, { print }) => (await import('./self-test.ts')).runSelfTest(print),
}

export const COMMANDS: readonly Command[] = [run, selfTest]
