/** `iggy-edge bench`: what this board with this disk takes, or a running server. */
import { BENCH_BOUNDS, BENCH_DEFAULTS } from '../bench/plan.ts'
import type { Command } from './command.ts'
import { CONFIG_ARGUMENTS } from './config-arguments.ts'
import { SERVER_ARGUMENTS } from './server-arguments.ts'

const { seconds, connections, payloadBytes } = BENCH_BOUNDS

export const bench: Command = {
  path: ['bench'],
  summary:
    'Measure what this board and its disk take, with an edge and a folder of its own beside the data folder; or a running server, when --url or another option of a server is given.',
  arguments: [
    ...CONFIG_ARGUMENTS.filter(({ name }) => name !== 'dev'),
    {
      name: 'seconds',
      summary: `Length of each of five measurements, ${seconds.min} to ${seconds.max}; default ${BENCH_DEFAULTS.seconds}.`,
    },
    {
      name: 'connections',
      summary: `Clients at the same time, ${connections.min} to ${connections.max}; default ${BENCH_DEFAULTS.connections}.`,
    },
    {
      name: 'size',
      summary: `Bytes of a message, ${payloadBytes.min} to ${payloadBytes.max}; default ${BENCH_DEFAULTS.payloadBytes}.`,
    },
    { name: 'json', isFlag: true, summary: 'All of it as JSON, for programs.' },
  ],
  common: SERVER_ARGUMENTS,
  run: async (values, context) => (await import('./run-bench.ts')).runBench(values, context),
}
