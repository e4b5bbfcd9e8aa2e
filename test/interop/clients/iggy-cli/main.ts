/**
 * Runs scenarios with the official `iggy` command line against one server: one JSON line per scenario.
 *
 *     main.ts --binary iggy --client-version V --transport T --tcp HOST:PORT --websocket … --quic … --http … SCENARIO...
 */
import { rmSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { Iggy } from './iggy.ts'
import { CLI_PROGRAM } from './scenarios.ts'

const text = { type: 'string', default: '' } as const
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    binary: text,
    'client-version': text,
    transport: text,
    tcp: text,
    websocket: text,
    quic: text,
    http: text,
  },
})
const { binary, transport, tcp, websocket, quic, http, 'client-version': version } = values
const iggy = new Iggy({ binary, version, transport, addresses: { tcp, websocket, quic, http } })
for (const scenario of positionals) {
  let detail = ''
  try {
    const run = CLI_PROGRAM[scenario]
    if (run === undefined) throw new Error(`there is no scenario ${scenario}`)
    await run(iggy)
  } catch (error) {
    detail = (error as Error).message
  }
  console.log(JSON.stringify({ client: 'iggy-cli', version, transport, scenario, ok: detail === '', detail }))
}
rmSync(iggy.home, { recursive: true, force: true })
