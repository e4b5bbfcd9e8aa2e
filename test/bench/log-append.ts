/**
 * What an append costs inside the engine, without sockets: `node test/bench/log-append.ts [seconds per case] [sealed]`.
 * Reports with the machine; asserts nothing, and no test runs it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { readArguments, refuseArguments } from '../../scripts/arguments.ts'
import { systemClock } from '../../src/clock.ts'
import {
  ENCRYPTION_SETTINGS,
  LOG_SETTINGS,
  type Log,
  openLog,
  type Partition,
  type Receipt,
} from '../../src/log/index.ts'
import { silentLogger } from '../../src/logger.ts'
import { defaultsOf } from '../../src/setting.ts'
import { recordsOf } from '../support/records.ts'
import { topicOptions } from '../support/topic-options.ts'

const USAGE = 'node test/bench/log-append.ts [seconds per case] [sealed]'

const { positionals } = readArguments(USAGE, { allowPositionals: true })
const [secondsText = '2', form, ...more] = positionals
const seconds = Number(secondsText)
const isSealed = form === 'sealed'
if (!(seconds > 0) || (form !== undefined && !isSealed) || more.length > 0)
  refuseArguments(USAGE, `found ${positionals.join(' ')}`)
const PAYLOAD_SIZE = 200

interface Case {
  readonly name: string
  readonly durability: 'durable' | 'buffered'
  readonly partitionCount: number
  readonly inFlight: number
  readonly recordsPerBatch: number
}

const CASES: readonly Case[] = [
  { name: 'durable, 16 in flight', durability: 'durable', partitionCount: 16, inFlight: 16, recordsPerBatch: 1 },
  { name: 'durable, 320 in flight', durability: 'durable', partitionCount: 16, inFlight: 320, recordsPerBatch: 1 },
  { name: 'durable, batches of 100', durability: 'durable', partitionCount: 16, inFlight: 16, recordsPerBatch: 100 },
  { name: 'buffered, 320 in flight', durability: 'buffered', partitionCount: 16, inFlight: 320, recordsPerBatch: 1 },
  { name: 'buffered, batches of 100', durability: 'buffered', partitionCount: 1, inFlight: 8, recordsPerBatch: 100 },
]

async function measure(log: Log, each: Case, number: number): Promise<void> {
  const stream = await log.catalog.createStream(`bench-${number}`)
  const spec = { name: 'topic', partitionCount: each.partitionCount, options: topicOptions(each.durability) }
  const topic = await log.catalog.createTopic(stream, spec)
  const numbers = Array.from({ length: each.recordsPerBatch }, (_, index) => index)
  const batch = { count: numbers.length, baseOriginUs: 1n, recordsView: recordsOf(numbers, PAYLOAD_SIZE) }
  const before = { ...log.stats(), cpu: process.cpuUsage(), at: performance.now() }
  const end = before.at + seconds * 1000
  let count = 0
  await new Promise<void>((resolve) => {
    let running = each.inFlight
    const producer = (partition: Partition): void => {
      const receipt: Receipt = {
        settled(error) {
          if (error !== null) throw error
          count++
          if (performance.now() < end) append()
          else if (--running === 0) resolve()
        },
      }
      const append = (): void => {
        if (log.hasRoom(batch.recordsView.length)) partition.append(batch, receipt)
        else log.onceRoom(append)
      }
      append()
    }
    for (let k = 0; k < each.inFlight; k++) {
      const partition = topic.partitions[k % topic.partitions.length]
      if (partition !== undefined) producer(partition)
    }
  })
  const elapsed = (performance.now() - before.at) / 1000
  const cpu = process.cpuUsage(before.cpu)
  const after = log.stats()
  const payload = count * numbers.length * PAYLOAD_SIZE
  console.log(
    each.name.padEnd(26),
    `${Math.round((count * numbers.length) / elapsed)} messages/s`.padStart(20),
    `${((cpu.user + cpu.system) / count).toFixed(2)} µs CPU a batch`.padStart(24),
    `${Math.round((after.syncCount - before.syncCount) / elapsed)} syncs/s`.padStart(14),
    `${((after.writtenBytes - before.writtenBytes) / payload).toFixed(2)} written per payload byte`.padStart(32),
  )
}

const folder = mkdtempSync(join(tmpdir(), 'log-append-'))
try {
  const settings = defaultsOf(LOG_SETTINGS)
  const encryption = {
    ...defaultsOf(ENCRYPTION_SETTINGS),
    enabled: isSealed,
    key: Buffer.alloc(32, 1).toString('base64'),
  }
  const path = join(folder, 'data')
  const log = await openLog({ path, clock: systemClock, logger: silentLogger, settings, encryption })
  console.log(
    `${isSealed ? 'sealed' : 'plain'}, ${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.version}, ${PAYLOAD_SIZE}-byte payloads`,
  )
  for (const [index, each] of CASES.entries()) await measure(log, each, index)
  const { heapUsed, arrayBuffers, rss } = process.memoryUsage()
  console.log(`heap ${heapUsed >> 20} MiB, buffers ${arrayBuffers >> 20} MiB, RSS ${rss >> 20} MiB`)
  await log.close()
} finally {
  rmSync(folder, { recursive: true, force: true })
}
