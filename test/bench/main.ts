/**
 * `npm run bench`: throughput, latency, memory and start time of this checkout, beside Apache Iggy's server where its binary
 * is named. Ratios come from rounds that alternate within one run, since machines drift; nothing is asserted.
 *
 *   EDGE_BENCH_APACHE=/path/to/iggy-server   the peer (server 0.8.0)
 *   EDGE_BENCH_EXECUTABLE=dist/iggy-edge-…   measure the executable instead of the checkout
 *   npm run bench -- [broker] [start] [idle] [flash] [--rounds 3]
 */
import { execFileSync } from 'node:child_process'
import { cpus, release } from 'node:os'
import { readArguments, refuseArguments } from '../../scripts/arguments.ts'
import { benchBroker } from './broker.ts'
import { benchFlash } from './flash.ts'
import { benchIdle } from './idle.ts'
import { benchStart } from './start.ts'

const BENCHES = { broker: benchBroker, start: benchStart, idle: benchIdle, flash: benchFlash } as const

const USAGE = 'npm run bench -- [broker] [start] [idle] [flash] [--rounds 3]'

const { values, positionals: chosen } = readArguments(USAGE, {
  allowPositionals: true,
  options: { rounds: { type: 'string', default: '3' } },
})
const rounds = Number(values.rounds)
if (!Number.isInteger(rounds) || rounds < 1)
  refuseArguments(USAGE, `--rounds: found ${values.rounds}, expected 1 or more`)
const unknown = chosen.find((name) => !(name in BENCHES))
if (unknown !== undefined) refuseArguments(USAGE, `there is no bench ${unknown}`)
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
console.log(
  `${cpus().length} x ${cpus()[0]?.model ?? 'unknown CPU'}, Linux ${release()}, Node ${process.versions.node}, commit ${commit}`,
)
for (const [name, bench] of Object.entries(BENCHES)) {
  if (chosen.length === 0 || chosen.includes(name)) await bench(rounds)
}
