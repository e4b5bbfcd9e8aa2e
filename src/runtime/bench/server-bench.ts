/**
 * Measures a running server from outside, in a stream of its own that is deleted at the end, whatever happens. What it
 * needs of the server beside the protocol (bytes written, syncs, room) comes through a port; a server need not tell it.
 */
import { randomBytes } from 'node:crypto'
import { formatBytes } from '../../byte-text.ts'
import { EdgeError, toEdgeError } from '../../errors.ts'
import { type Client, dialOf } from '../../sdk/index.ts'
import type { Dialect } from '../../sdk/wire/dialect.ts'
import { type LoadHooks, type LoadOrder, runLoad } from './load.ts'
import type { LoadTarget } from './load-client.ts'
import {
  type BenchOptions,
  batchOf,
  partitionsOf,
  planScenarios,
  polledBatches,
  ROOM_MIN_BYTES,
  requestsWithin,
  type Scenario,
  storedLimitOf,
} from './plan.ts'
import type { BenchReport, ScenarioReport } from './report.ts'

export interface BenchPorts {
  /** Logged in; the load goes over connections of its own. */
  readonly client: Client
  /** null: the server does not tell. */
  disk(): Promise<DiskFigures | null>
  /** What is going on. */
  note(line: string): void
  readonly signal: AbortSignal
}

export interface DiskFigures {
  /** Since the server's start. */
  readonly writtenBytes: number
  readonly syncs: number
  /** What may be stored before the server has to give up older messages, or the disk is full. */
  readonly roomBytes: number
  /** 0 = none. */
  readonly flashBudgetPerDayBytes: number
  readonly flashBudgetLeftBytes: number
}

const WARM_UP_SECONDS = 0.5
const FILL_SECONDS = 10
/** Of the token the load logs in with, should nobody be left to delete it. */
const TOKEN_LIFETIME_US = 3_600_000_000n

/** @throws {EdgeError} EDGE_DISK_FULL with too little room, EDGE_SHUTTING_DOWN, what the server refuses. */
export async function benchServer(options: BenchOptions, ports: BenchPorts): Promise<BenchReport> {
  const hasPromises = await canPromise(ports.client)
  // An edge speaks both: the older one costs the client less.
  const dialect = hasPromises ? 'classic' : (ports.client.dialect ?? 'classic')
  if (dialect === 'vsr')
    ports.note('this server speaks the newer protocol alone: the work of its clients is in the figures')
  const disk = await ports.disk()
  // Of a disk that nobody tells about, the least is taken.
  const limitBytes = storedLimitOf(disk?.roomBytes ?? ROOM_MIN_BYTES)
  if (limitBytes === null) throw tooLittleRoom('the server', disk?.roomBytes ?? 0)
  return await new ServerBench(options, ports, { hasPromises, dialect, limitBytes }).run()
}

export function tooLittleRoom(where: string, foundBytes: number): EdgeError {
  const text = `bench: ${where} has room for ${formatBytes(foundBytes)}, expected at least ${formatBytes(ROOM_MIN_BYTES)}`
  return new EdgeError('EDGE_DISK_FULL', text, { details: { foundBytes, neededBytes: ROOM_MIN_BYTES } })
}

/** Only an edge lets a topic choose. */
async function canPromise(client: Client): Promise<boolean> {
  try {
    return (await client.system.describeOptions('topic')).some(({ key }) => key === 'durability')
  } catch (error) {
    // An older server knows no such command; what else is wrong shows with the next one.
    if (error instanceof EdgeError) return false
    throw error
  }
}

interface Found {
  readonly hasPromises: boolean
  /** What the load speaks. */
  readonly dialect: Dialect
  readonly limitBytes: number
}

class ServerBench {
  readonly #options: BenchOptions
  readonly #ports: BenchPorts
  readonly #found: Found
  readonly #name = `bench-${randomBytes(4).toString('hex')}`

  constructor(options: BenchOptions, ports: BenchPorts, found: Found) {
    this.#options = options
    this.#ports = ports
    this.#found = found
  }

  async run(): Promise<BenchReport> {
    const { client } = this.#ports
    const { connections, payloadBytes } = this.#options
    await client.streams.create(this.#name)
    try {
      // A password costs the server a tenth of a second for each connection, by design; a token does not.
      const token = await client.tokens.create(this.#name, TOKEN_LIFETIME_US)
      const { dialect } = this.#found
      const target: LoadTarget = { dial: dialOf(client.target), credentials: { kind: 'token', token }, dialect }
      const scenarios = await this.#measureAll(target)
      const memoryBytes = await this.#memoryBytes()
      const disk = await this.#ports.disk()
      return {
        place: { kind: 'server', address: `${client.target.host}:${client.target.port}` },
        connections,
        size_bytes: payloadBytes,
        scenarios,
        ...(memoryBytes > 0 ? { memory_bytes: memoryBytes } : {}),
        ...(disk !== null && isUsedUp(disk) ? { flash_budget_used_up_bytes: disk.flashBudgetPerDayBytes } : {}),
      }
    } finally {
      await this.#remove('token', () => client.tokens.delete(this.#name))
      await this.#remove('stream', () => client.streams.delete(this.#name))
    }
  }

  /** 0 = not told: not every user may ask. */
  async #memoryBytes(): Promise<number> {
    try {
      return Number((await this.#ports.client.system.stats()).memoryUsage)
    } catch (error) {
      if (error instanceof EdgeError) return 0
      throw error
    }
  }

  /** What could not be removed is named; the first error, if any, is the one that counts. */
  async #remove(what: string, remove: () => Promise<void>): Promise<void> {
    try {
      await remove()
    } catch (error) {
      this.#ports.note(`the ${what} ${this.#name} may be left on the server: ${toEdgeError(error).message}`)
    }
  }

  async #measureAll(target: LoadTarget): Promise<readonly ScenarioReport[]> {
    const reports: ScenarioReport[] = []
    const scenarios = planScenarios(this.#options, this.#found.hasPromises)
    const polled = 'polled'
    for (const scenario of scenarios) {
      this.#ports.note(`measuring ${scenario.title} ..`)
      if (scenario.kind === 'send') {
        reports.push(await this.#measureSends(scenario, target))
        continue
      }
      if (!reports.some(({ name }) => name.startsWith('polls'))) await this.#fill(polled, target)
      reports.push(await this.#measure(scenario, { topic: polled, partitions: 1, requests: Infinity }, target))
    }
    return reports
  }

  /** Each in a topic of its own, deleted at once: what is stored is never more than one measurement. */
  async #measureSends(scenario: Scenario, target: LoadTarget): Promise<ScenarioReport> {
    const { client } = this.#ports
    const partitions = partitionsOf(this.#options.connections)
    const options = scenario.promise === null ? {} : { durability: scenario.promise }
    await client.topics.create(this.#name, scenario.name, { partitions, options })
    const requests = requestsWithin(this.#found.limitBytes, scenario.batch, this.#options.payloadBytes)
    const report = await this.#measure(scenario, { topic: scenario.name, partitions, requests }, target)
    await client.topics.delete(this.#name, scenario.name)
    return report
  }

  /** One partition for all: what readers of the newest messages do. */
  async #fill(topic: string, target: LoadTarget): Promise<void> {
    const options = this.#found.hasPromises ? { durability: 'buffered' } : {}
    await this.#ports.client.topics.create(this.#name, topic, { partitions: 1, options })
    const { payloadBytes } = this.#options
    const order: LoadOrder = {
      connections: 1,
      partitions: 1,
      kind: 'send',
      batch: batchOf(this.#options),
      payloadBytes,
      requests: polledBatches(this.#found.limitBytes, this.#options),
      seconds: FILL_SECONDS,
      stream: this.#name,
      topic,
    }
    await runLoad(order, target, { signal: this.#ports.signal })
  }

  async #measure(
    scenario: Scenario,
    where: Pick<LoadOrder, 'topic' | 'partitions' | 'requests'>,
    target: LoadTarget,
  ): Promise<ScenarioReport> {
    const { connections, payloadBytes, seconds } = this.#options
    const { kind, batch, name, title, promise } = scenario
    let before: Promise<TimedFigures | null> = Promise.resolve(null)
    const hooks: LoadHooks = {
      onMeasuring: () => {
        if (kind === 'send') before = this.#timedDisk()
      },
      signal: this.#ports.signal,
    }
    const load = { kind, batch, connections, payloadBytes, seconds, warmUpSeconds: WARM_UP_SECONDS, stream: this.#name }
    const result = await runLoad({ ...load, ...where }, target, hooks)
    const written = writtenBetween(await before, kind === 'send' ? await this.#timedDisk() : null)
    return {
      name,
      title,
      ...(promise === null ? {} : { promise }),
      batch,
      seconds: round(result.seconds, 3),
      messages: result.messages,
      messages_per_second: round(result.messagesPerSecond, 1),
      p50_us: result.p50Us,
      p99_us: result.p99Us,
      ...written,
      ...(result.isCutShort ? { stopped_at_bytes: this.#found.limitBytes } : {}),
    }
  }

  /** Never rejects: figures that cannot be had are left out. */
  async #timedDisk(): Promise<TimedFigures | null> {
    const disk = await this.#ports.disk()
    return disk === null ? null : { ...disk, atMs: performance.now() }
  }
}

interface TimedFigures extends DiskFigures {
  readonly atMs: number
}

function writtenBetween(
  before: TimedFigures | null,
  after: TimedFigures | null,
): Pick<ScenarioReport, 'written_bytes_per_second' | 'syncs_per_second'> {
  if (before === null || after === null) return {}
  const seconds = (after.atMs - before.atMs) / 1000
  return {
    written_bytes_per_second: Math.round((after.writtenBytes - before.writtenBytes) / seconds),
    syncs_per_second: round((after.syncs - before.syncs) / seconds, 1),
  }
}

/** It holds back syncs only when there is one and nothing of it is left. */
const isUsedUp = ({ flashBudgetPerDayBytes, flashBudgetLeftBytes }: DiskFigures): boolean =>
  flashBudgetPerDayBytes > 0 && flashBudgetLeftBytes <= 0

const round = (value: number, digits: number): number => Number(value.toFixed(digits))
