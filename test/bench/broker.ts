/** Sends and polls through the whole server, beside Apache's: the same client, the same frames, rounds in turn. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import type { LoadOrder, LoadResult } from '../../src/runtime/bench/load.ts'
import { frameOf } from '../../src/runtime/bench/raw-client.ts'
import { CODE } from '../../src/sdk/wire/codes.ts'
import { loginFrame, openRawClient, type ProcessOrder } from './support/load.ts'
import { cpuUsOf, type MeasuredServer, memoryOf, startApacheServer, startEdgeServer } from './support/servers.ts'

interface Scenario {
  readonly name: string
  readonly order: Omit<LoadOrder, 'stream' | 'topic'>
  readonly edge: Readonly<Record<string, string>>
  readonly apache: Readonly<Record<string, string>>
  /** Messages stored per partition before the measurement: for polls. */
  readonly stored: number
  /** What counts is the memory, at the end of the work and after a rest. */
  readonly isOfMemory?: boolean
}

const DURABLE_APACHE = {
  IGGY_SYSTEM_PARTITION_ENFORCE_FSYNC: 'true',
  IGGY_SYSTEM_PARTITION_MESSAGES_REQUIRED_TO_SAVE: '1',
}
const BUFFERED_EDGE = { EDGE_LOG__DEFAULT_DURABILITY: 'buffered' }
const SECONDS = 5
const WARM_UP_SECONDS = 3
const PAYLOAD_BYTES = 200
/** What a server holds when it has nothing to do shows this long after its work. */
const REST_MS = 12_000
/** No bound but the time. */
const UNBOUNDED = 1e9

const order = (kind: 'send' | 'poll', connections: number, partitions: number, batch: number) =>
  ({
    kind,
    connections,
    partitions,
    batch,
    payloadBytes: PAYLOAD_BYTES,
    requests: UNBOUNDED,
    seconds: SECONDS,
    warmUpSeconds: WARM_UP_SECONDS,
  }) as const

const SCENARIOS: readonly Scenario[] = [
  {
    name: 'durable, 1 x 200 B, 16 connections',
    order: order('send', 16, 16, 1),
    edge: {},
    apache: DURABLE_APACHE,
    stored: 0,
  },
  {
    name: 'buffered, 1 x 200 B, 16 connections',
    order: order('send', 16, 16, 1),
    edge: BUFFERED_EDGE,
    apache: {},
    stored: 0,
  },
  {
    name: 'buffered, 100 x 200 B, 1 connection',
    order: order('send', 1, 1, 100),
    edge: BUFFERED_EDGE,
    apache: {},
    stored: 0,
  },
  { name: 'poll 100, 1 connection', order: order('poll', 1, 1, 100), edge: BUFFERED_EDGE, apache: {}, stored: 100_000 },
  {
    name: 'poll 1000, 1 connection',
    order: order('poll', 1, 1, 1000),
    edge: BUFFERED_EDGE,
    apache: {},
    stored: 100_000,
  },
  {
    name: 'memory after 400,000 messages, one a request',
    order: { ...order('send', 16, 16, 1), requests: 400_000, seconds: 120, warmUpSeconds: 0 },
    edge: BUFFERED_EDGE,
    apache: {},
    stored: 0,
    isOfMemory: true,
  },
  {
    name: 'memory after 400,000 messages, 100 a request',
    order: { ...order('send', 4, 4, 100), requests: 4000, seconds: 60, warmUpSeconds: 0 },
    edge: BUFFERED_EDGE,
    apache: {},
    stored: 0,
    isOfMemory: true,
  },
]

export async function benchBroker(rounds: number): Promise<void> {
  const apache = process.env.EDGE_BENCH_APACHE
  if (apache === undefined) console.log('EDGE_BENCH_APACHE is not set: measuring the edge alone')
  for (const scenario of SCENARIOS) {
    const lines: string[] = []
    const ratios: number[] = []
    const cpuRatios: number[] = []
    const restRatios: number[] = []
    for (let round = 0; round < rounds; round++) {
      const ours = await measure(() => startEdgeServer(scenario.edge), scenario)
      const theirs =
        apache === undefined ? null : await measure(() => startApacheServer(apache, scenario.apache), scenario)
      lines.push(`${format(ours)}${theirs === null ? '' : `   | apache ${format(theirs)}`}`)
      if (theirs === null) continue
      ratios.push(ratioOf(scenario, ours, theirs))
      cpuRatios.push(ours.cpuUsPerMessage / theirs.cpuUsPerMessage)
      if (ours.restedBytes !== null && theirs.restedBytes !== null)
        restRatios.push(ours.restedBytes / theirs.restedBytes)
    }
    console.log(`\n${scenario.name}`)
    for (const line of lines) console.log(`  edge ${line}`)
    tell('edge : apache', ratios)
    tell('after a rest', restRatios)
    tell('CPU a message', cpuRatios)
  }
}

function tell(what: string, ratios: readonly number[]): void {
  if (ratios.length > 0) console.log(`  ${what}  ${ratios.map((ratio) => ratio.toFixed(2)).join('  ')}`)
}

interface Measured extends LoadResult {
  readonly privateBytes: number
  readonly restedBytes: number | null
  /** Of the server, all threads; what it does behind the answers (repacking, saving) is in it as far as it was done. */
  readonly cpuUsPerMessage: number
}

const ratioOf = (scenario: Scenario, ours: Measured, theirs: Measured): number =>
  scenario.isOfMemory === true
    ? ours.privateBytes / theirs.privateBytes
    : ours.messagesPerSecond / theirs.messagesPerSecond

const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`

function format(each: Measured): string {
  const rate = Math.round(each.messagesPerSecond).toLocaleString('en')
  const rested = each.restedBytes === null ? '' : `, after a rest ${mib(each.restedBytes)}`
  const cpu = each.cpuUsPerMessage.toFixed(2)
  return `${rate} msg/s, p50 ${each.p50Us} us, p99 ${each.p99Us} us, CPU ${cpu} us/msg, private ${mib(each.privateBytes)}${rested}`
}

async function measure(start: () => Promise<MeasuredServer>, scenario: Scenario): Promise<Measured> {
  await using server = await start()
  const { host, port, username, password } = server
  const target = { host, port, username, password, stream: 'bench', topic: 'readings' }
  await createTopic(server, scenario.order.partitions)
  if (scenario.stored > 0) {
    await load({
      ...target,
      ...order('send', 1, 1, 1000),
      requests: scenario.stored / 1000,
      seconds: 60,
      warmUpSeconds: 0,
    })
  }
  let cpuBeforeUs = 0
  const result = await load({ ...target, ...scenario.order }, () => {
    cpuBeforeUs = cpuUsOf(server.pid)
  })
  const cpuUsPerMessage = (cpuUsOf(server.pid) - cpuBeforeUs) / Math.max(1, result.messages)
  const { privateBytes } = memoryOf(server.pid)
  const restedBytes = scenario.isOfMemory === true ? await afterRest(server.pid) : null
  return { ...result, cpuUsPerMessage, privateBytes, restedBytes }
}

async function afterRest(pid: number): Promise<number> {
  await delay(REST_MS)
  return memoryOf(pid).privateBytes
}

async function createTopic(server: MeasuredServer, partitionsCount: number): Promise<void> {
  const client = await openRawClient(server.host, server.port)
  await client.ask(loginFrame(server.username, server.password))
  await client.ask(frameOf({ code: CODE.createStream, body: { name: 'bench', options: [] } }))
  const body = { stream: 'bench', name: 'readings', partitionsCount, options: [], replicationFactor: 1 }
  await client.ask(frameOf({ code: CODE.createTopic, body }))
  client.close()
}

/** In a process of its own: the generator must not share the server's core. */
async function load(order: ProcessOrder, onMeasuring: () => void = () => {}): Promise<LoadResult> {
  const script = new URL('support/load.ts', import.meta.url).pathname
  const child = spawn(process.execPath, [script, JSON.stringify(order)], { stdio: ['ignore', 'pipe', 'inherit'] })
  let last = ''
  for await (const line of createInterface({ input: child.stdout })) {
    if (line === 'measuring') onMeasuring()
    else last = line
  }
  return JSON.parse(last) as LoadResult
}
