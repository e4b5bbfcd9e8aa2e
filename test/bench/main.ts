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
import { benchBroker } from './broker.ts'
import { benchFlash } from './flash.ts'
import { benchIdle } from './idle.ts'
import { benchStart } from './start.ts'

const BENCHES = { broker: benchBroker, start: benchStart, idle: benchIdle, flash: benchFlash } as const

const words = process.argv.slice(2)
const rounds = Number(words[words.indexOf('--rounds') + 1] ?? 3) || 3
const chosen = Object.keys(BENCHES).filter((name) => words.includes(name))
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
console.log(
  `${cpus().length} x ${cpus()[0]?.model ?? 'unknown CPU'}, Linux ${release()}, Node ${process.versions.node}, commit ${commit}`,
)
for (const [name, bench] of Object.entries(BENCHES)) {
  if (chosen.length === 0 || chosen.includes(name)) await bench(rounds)
}
