/**
 * A process that appends numbers to a log until it is killed, and tells each ack on stdout before it goes on:
 *
 *   node log-writer.ts <data folder> <first number> [<key of 32 bytes in base64>]
 *
 * Prints `<topic> <offset> <number>` per ack, each by one synchronous write, so that nothing said is lost with the process.
 */
import { writeSync } from 'node:fs'
import { systemClock } from '../../src/clock.ts'
import { type Durability, ENCRYPTION_SETTINGS, LOG_SETTINGS, openLog, type Partition } from '../../src/log/index.ts'
import { silentLogger } from '../../src/logger.ts'
import { defaultsOf } from '../../src/setting.ts'
import { recordsOf } from './records.ts'
import { topicOptions } from './topic-options.ts'

const IN_FLIGHT = 8
const STDOUT = 1

const path = process.argv[2] ?? ''
let next = Number(process.argv[3] ?? 0)
const settings = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * 1024, segment_size: 64 * 1024 }
const key = process.argv[4] ?? ''
const encryption = { ...defaultsOf(ENCRYPTION_SETTINGS), enabled: key !== '', key }
const log = await openLog({ path, clock: systemClock, logger: silentLogger, settings, encryption })
const stream = log.catalog.stream('s') ?? (await log.catalog.createStream('s'))
for (const name of ['durable', 'buffered'] as const) {
  const known = log.catalog.topic(stream.id, name)
  const topic =
    known ?? (await log.catalog.createTopic(stream, { name, partitionCount: 1, options: topicOptions(name) }))
  const [partition] = topic.partitions
  if (partition !== undefined) for (let k = 0; k < IN_FLIGHT; k++) appendOn(partition, name)
}

function appendOn(partition: Partition, name: Durability): void {
  const recordsView = recordsOf([next], 64 + (next % 700))
  if (!log.hasRoom(recordsView.length)) {
    log.onceRoom(() => appendOn(partition, name))
    return
  }
  const number = next++
  const { baseOffset } = partition.append(
    { count: 1, baseOriginUs: 1n, recordsView },
    {
      settled: (error) => {
        if (error === null) writeSync(STDOUT, `${name} ${baseOffset} ${number}\n`)
        setImmediate(() => appendOn(partition, name))
      },
    },
  )
}
