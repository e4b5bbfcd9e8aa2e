/**
 * The demo: an edge, a central server and three devices on this machine. The link between edge and central is cut for ten
 * seconds; then both logs are compared, message by message.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { systemClock } from '../../clock.ts'
import { createLogger } from '../../logger.ts'
import { type Client, connect } from '../../sdk/index.ts'
import { DEFAULT_ROOT } from '../broker/index.ts'
import { loadConfig } from '../config/load.ts'
import { type Edge, startEdge } from '../edge.ts'
import { type Copy, compareCopies, isExactlyOnce, sumVerdicts, type Verdict } from './comparison.ts'
import { DEMO_DEVICES, type DemoDevice, startDevice } from './devices.ts'
import { type Link, openLink } from './link.ts'

export interface DemoOptions {
  /** Ends after the comparison; else goes on until `signal`. */
  readonly isOnce: boolean
  /** Kept when given; else a temporary folder that is removed. */
  readonly dataPath: string | undefined
  readonly signal: AbortSignal
  print(line: string): void
}

const STREAM = 'sensors'
const TOPIC = 'vitals'
const UPSTREAM_STREAM = 'gateway-1'
const PARTITIONS = 3
const INTERVAL_MS = 200
const BEFORE_CUT_MS = 4000
const CUT_MS = 10_000
const REPORT_MS = 2000
/** The link is back within a retry; what waits is far less than a second's work. */
const DRAIN_TIMEOUT_MS = 60_000
const POLL_COUNT = 1000

/** @returns whether every reading arrived upstream exactly once, in order. */
export async function runDemo({ isOnce, dataPath, signal, print }: DemoOptions): Promise<boolean> {
  const folder = dataPath ?? mkdtempSync(join(tmpdir(), 'iggy-edge-demo-'))
  await using resources = new AsyncDisposableStack()
  if (dataPath === undefined) resources.defer(() => rmSync(folder, { recursive: true, force: true }))
  const central = resources.use(await startServer(join(folder, 'central'), false, ''))
  const link = resources.use(await openLink(hostAndPort(central.addresses.tcp)))
  const edge = resources.use(await startServer(join(folder, 'edge'), true, forwardTo(link)))
  const devices = await startDevices(edge)
  resources.defer(async () => void (await Promise.all(devices.map((device) => device.close()))))

  const stats = edge.log.stats()
  print(`data folder   ${edge.dataPath}`)
  print('promise       durable: a reading is acknowledged after fdatasync')
  print(`disk budget   ${gib(stats.diskBudgetBytes)} of ${gib(stats.diskTotalBytes)}`)
  print(
    `page          http://${edge.addresses.http}/   (user ${DEFAULT_ROOT.username}, password ${DEFAULT_ROOT.password})`,
  )

  const report = (what: string) => print(`${what.padEnd(10)} ${describe(devices, edge)}`)
  await pause(BEFORE_CUT_MS, signal)
  report('link up')
  link.cut()
  for (let passedMs = 0; passedMs < CUT_MS && !signal.aborted; passedMs += REPORT_MS) {
    await pause(REPORT_MS, signal)
    report('link cut')
  }
  link.restore()
  while (!isOnce && !signal.aborted) {
    await pause(REPORT_MS, signal)
    report('link up')
  }
  await Promise.all(devices.map((device) => device.drain()))
  await untilForwarded(edge, report)
  const verdict = await compare(edge, central)
  print(`verdict    ${describeVerdict(verdict, devices)}`)
  const published = devices.reduce((sum, device) => sum + device.published, 0)
  return isExactlyOnce(verdict) && verdict.local === published
}

async function startServer(path: string, hasWebTransport: boolean, more: string): Promise<Edge> {
  const text = `
[logging]
level = "error"
[log]
journal_file_size = "1 MiB"
[tcp]
address = "127.0.0.1:0"
[http]
address = "127.0.0.1:0"
[websocket]
enabled = false
[webtransport]
enabled = ${hasWebTransport}
address = "127.0.0.1:0"
${more}`
  const config = loadConfig({ file: { name: 'demo', text }, environment: {}, flags: { 'system.path': path } })
  return startEdge({ config, clock: systemClock, logger: createLogger(config.logging.level), root: DEFAULT_ROOT })
}

const gib = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`

/** Somebody watches: the first attempt after the link is back comes sooner than the half minute of the default. */
const forwardTo = (link: Link): string => `
[[sync.upstreams]]
name = "central"
url = "iggy+tcp://${DEFAULT_ROOT.username}:${DEFAULT_ROOT.password}@${link.host}:${link.port}"
retry_delay_max = "2 s"
[[sync.routes]]
from = "${STREAM}/*"
to = "central:${UPSTREAM_STREAM}/{topic}"
`

async function startDevices(edge: Edge): Promise<readonly DemoDevice[]> {
  const root = { dialect: 'edge', userId: 0, client: null } as const
  await edge.broker.createStream(root, STREAM)
  await edge.broker.createTopic(root, STREAM, { name: TOPIC, partitionCount: PARTITIONS, options: {} })
  const policy = JSON.stringify({ device: '*', publish: [`${STREAM}/*`], subscribe: [] })
  const token = await edge.broker.createDeviceToken(root, 'demo-devices', null, policy)
  const shared = {
    token,
    address: edge.addresses.webtransport,
    certificateSha256: edge.certificateSha256() ?? '',
    topic: `${STREAM}/${TOPIC}`,
    intervalMs: INTERVAL_MS,
  }
  return Promise.all(DEMO_DEVICES.map((device) => startDevice({ ...shared, ...device })))
}

function backlogOf(edge: Edge): number {
  return edge.routes().reduce((sum, { lagMessages }) => sum + lagMessages, 0)
}

function describe(devices: readonly DemoDevice[], edge: Edge): string {
  const sum = (count: (device: DemoDevice) => number) => devices.reduce((total, device) => total + count(device), 0)
  const carriers = new Set(devices.map(({ carrier }) => carrier ?? 'none'))
  const counts = `published ${sum(({ published }) => published)} over ${[...carriers].join(' and ')}, acknowledged ${sum(({ acknowledged }) => acknowledged)}`
  return `${counts}, backlog ${backlogOf(edge)}`
}

function describeVerdict(verdict: Verdict, devices: readonly DemoDevice[]): string {
  const published = devices.reduce((sum, device) => sum + device.published, 0)
  const order = verdict.isInOrder ? 'in order' : 'OUT OF ORDER'
  return `published ${published}, kept ${verdict.local}, upstream ${verdict.upstream} ${order}, missing ${verdict.missing}, duplicates ${verdict.duplicates}`
}

async function untilForwarded(edge: Edge, report: (what: string) => void): Promise<void> {
  const endMs = performance.now() + DRAIN_TIMEOUT_MS
  while (backlogOf(edge) > 0 && performance.now() < endMs) {
    report('draining')
    await pause(500)
  }
  report('drained')
}

async function compare(edge: Edge, central: Edge): Promise<Verdict> {
  await using local = await connect(urlOf(edge))
  await using upstream = await connect(urlOf(central))
  const verdicts: Verdict[] = []
  for (let partitionId = 0; partitionId < PARTITIONS; partitionId++) {
    const ours = await readAll(local, STREAM, partitionId)
    verdicts.push(compareCopies(ours, await readAll(upstream, UPSTREAM_STREAM, partitionId)))
  }
  return sumVerdicts(verdicts)
}

async function readAll(client: Client, stream: string, partitionId: number): Promise<readonly Copy[]> {
  const copies: Copy[] = []
  for (let offset = 0n; ; ) {
    const strategy = { kind: 'offset', offset } as const
    const { messages } = await client.messages.poll(stream, TOPIC, { partitionId, strategy, count: POLL_COUNT })
    copies.push(...messages.map(({ id, payload }) => ({ id, payload })))
    const last = messages.at(-1)
    if (last === undefined) return copies
    offset = last.offset + 1n
  }
}

const urlOf = (server: Edge): string =>
  `iggy+tcp://${DEFAULT_ROOT.username}:${DEFAULT_ROOT.password}@${server.addresses.tcp}`

function hostAndPort(address: string): { host: string; port: number } {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) }
}

async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  // Woken early by the signal: whoever waits looks at it next.
  await setTimeout(ms, undefined, signal === undefined ? {} : { signal }).catch(() => {})
}
