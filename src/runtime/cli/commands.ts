/** All commands of the executable. Those that need much are loaded when they are chosen, so that `run` starts fast. */
import { bench } from './bench.ts'
import { check, dump } from './check.ts'
import type { Command } from './command.ts'
import { demo } from './demo.ts'
import { init } from './init.ts'
import { CONSUMER_GROUP_COMMANDS } from './nouns/consumer-group.ts'
import { CONSUMER_OFFSET_COMMANDS } from './nouns/consumer-offset.ts'
import { DEVICE_COMMANDS } from './nouns/device.ts'
import { MESSAGE_COMMANDS } from './nouns/message.ts'
import { PARTITION_COMMANDS } from './nouns/partition.ts'
import { STREAM_COMMANDS } from './nouns/stream.ts'
import { SYSTEM_COMMANDS } from './nouns/system.ts'
import { TOKEN_COMMANDS } from './nouns/token.ts'
import { TOPIC_COMMANDS } from './nouns/topic.ts'
import { USER_COMMANDS } from './nouns/user.ts'
import { run } from './run.ts'
import { status } from './status.ts'

const selfTest: Command = {
  path: ['self-test'],
  summary: 'Check that this build works on this machine: SQLite, disk, QUIC, HTTP.',
  arguments: [],
  run: async (_values, { print }) => (await import('./self-test.ts')).runSelfTest(print),
}

export const COMMANDS: readonly Command[] = [
  run,
  init,
  status,
  check,
  dump,
  demo,
  bench,
  selfTest,
  ...STREAM_COMMANDS,
  ...TOPIC_COMMANDS,
  ...PARTITION_COMMANDS,
  ...MESSAGE_COMMANDS,
  ...CONSUMER_GROUP_COMMANDS,
  ...CONSUMER_OFFSET_COMMANDS,
  ...USER_COMMANDS,
  ...TOKEN_COMMANDS,
  ...DEVICE_COMMANDS,
  ...SYSTEM_COMMANDS,
]
