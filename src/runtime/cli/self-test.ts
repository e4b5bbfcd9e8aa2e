/**
 * `iggy-edge self-test`: does everything that depends on this machine work? Native addons, disk and sockets, each by the
 * unit that uses it, in a folder of its own and on loopback. It reads no configuration and touches no store, so it can run
 * beside a serving edge.
 */
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../clock.ts'
import { EdgeError, messageOf } from '../../errors.ts'
import { type Appended, LOG_SETTINGS, type Log, openLog, type Partition } from '../../log/index.ts'
import { silentLogger } from '../../logger.ts'
import { type QuicSessionEvents, startQuicEdge } from '../../quic-edge/index.ts'
import { loadWebTransport } from '../../quinn-transport/index.ts'
import { RecordCursor, RecordWriter } from '../../sdk/wire/kernel/record-cursor.ts'
import { defaultsOf, KIB, MIB } from '../../setting.ts'
import { defaultTopicOptions } from '../broker/topic-options.ts'
import { addonSources } from '../executable/addon.ts'
import { pageAssetNames, readAsset } from '../executable/assets.ts'
import { compiledParts } from '../executable/program-parts.ts'

/** Generous, as an emulated processor takes seconds for what a real one does in milliseconds. */
const CHECK_TIMEOUT_MS = 60_000
const SAMPLE_BYTES = 100
const LOOPBACK = '127.0.0.1'

interface Check {
  readonly name: string
  /** @returns what was seen, in a few words. @throws {Error} what went wrong. */
  run(folder: string): Promise<string>
}

const CHECKS: readonly Check[] = [
  { name: 'sqlite write and read', run: checkSqlite },
  { name: 'append and poll', run: checkLog },
  { name: 'quic echo', run: checkQuic },
  { name: 'http answer', run: checkHttp },
]

/**
 * Runs all checks, also after one has failed, and prints a line for each.
 *
 * @returns the exit code: 0 when everything works, else 1. Leave with it at once: a failed check may hold sockets open.
 */
export async function runSelfTest(print: (line: string) => void): Promise<number> {
  let failedCount = 0
  for (const check of CHECKS) {
    const startMs = performance.now()
    let folder: string | null = null
    try {
      folder = await mkdtemp(join(tmpdir(), 'iggy-edge-self-test-'))
      const seen = await withinTime(check.run(folder))
      print(`ok      ${check.name}: ${seen} (${Math.round(performance.now() - startMs)} ms)`)
    } catch (error) {
      failedCount++
      print(`FAILED  ${check.name}: ${messageOf(error)}`)
    } finally {
      if (folder !== null) await removeFolder(folder)
    }
  }
  for (const [name, source] of addonSources()) print(`addon   ${name} from ${source}`)
  const { recorded, taken } = compiledParts()
  print(
    recorded === 0 ? 'code    compiled at each start' : `code    compiled beforehand: ${taken} of ${recorded} parts`,
  )
  print(failedCount === 0 ? 'self-test passed' : `self-test failed: ${failedCount} of ${CHECKS.length} checks`)
  return failedCount === 0 ? 0 : 1
}

/** What a failed check still has open may be writing; a folder that stays is no failure of its own. */
async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => {})
}

async function withinTime(work: Promise<string>): Promise<string> {
  const { promise: timeout, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`no result within ${CHECK_TIMEOUT_MS / 1000} s`)), CHECK_TIMEOUT_MS)
  try {
    return await Promise.race([work, timeout])
  } finally {
    clearTimeout(timer)
  }
}

// ---- disk

function openSmallLog(folder: string): Promise<Log> {
  const settings = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 256 * KIB, journal_files: 3 }
  return openLog({ path: join(folder, 'data'), clock: systemClock, logger: silentLogger, settings })
}

async function checkSqlite(folder: string): Promise<string> {
  const written = randomBytes(16).toString('hex')
  {
    await using log = await openSmallLog(folder)
    await log.metadata.setSetting('self-test', written)
  }
  await using log = await openSmallLog(folder)
  expectSame('setting', log.metadata.setting('self-test'), written)
  return 'a setting survived closing and opening'
}

async function checkLog(folder: string): Promise<string> {
  const payload = randomBytes(SAMPLE_BYTES)
  let appended: Appended
  {
    await using log = await openSmallLog(folder)
    const stream = await log.catalog.createStream('self-test')
    const options = defaultTopicOptions({ durability: 'durable', segmentSizeBytes: MIB, dedupWindow: null })
    const topic = await log.catalog.createTopic(stream, { name: 'samples', partitionCount: 1, options })
    appended = await append(partitionOf(topic.partitions), payload)
  }
  await using log = await openSmallLog(folder)
  const partition = partitionOf(
    log.catalog.topic(log.catalog.stream('self-test')?.id ?? 0, 'samples')?.partitions ?? [],
  )
  const result = await partition.read({ fromOffset: appended.baseOffset, maxCount: 1, maxBytes: 64 * KIB })
  const batch = result.batches[0]
  if (batch === undefined) throw new Error(`nothing at offset ${appended.baseOffset}`)
  const cursor = new RecordCursor(batch.recordsView, batch.baseOriginUs)
  if (!cursor.next()) throw new Error('the stored record cannot be read')
  const polled = batch.recordsView.subarray(cursor.bodyAt, cursor.bodyAt + cursor.payloadSize)
  expectSame('payload', Buffer.from(polled).toString('hex'), payload.toString('hex'))
  return `${appended.promise} at offset ${appended.baseOffset}, polled after closing and opening`
}

function partitionOf(partitions: readonly Partition[]): Partition {
  const partition = partitions[0]
  if (partition === undefined) throw new Error('the topic has no partition')
  return partition
}

/** Resolves when the promise holds that the append was given. */
async function append(partition: Partition, payload: Uint8Array): Promise<Appended> {
  const baseOriginUs = systemClock.wallUs()
  const recordBytes = new Uint8Array(payload.length + 32)
  const writer = new RecordWriter(recordBytes)
  writer.head(Number(baseOriginUs & 0xffff_ffffn), Number(baseOriginUs >> 32n), recordBytes, -1, 0, payload.length)
  recordBytes.set(payload, writer.at)
  const recordsView = recordBytes.subarray(0, writer.at + payload.length)
  const { promise: settled, resolve, reject } = Promise.withResolvers<void>()
  const receipt = { settled: (error: EdgeError | null) => (error === null ? resolve() : reject(error)) }
  const appended = partition.append({ count: 1, baseOriginUs, recordsView }, receipt)
  await settled
  return appended
}

// ---- sockets

async function checkQuic(folder: string): Promise<string> {
  const certificate = { type: 'self-signed', directory: folder } as const
  const edge = await startQuicEdge(
    { host: LOOPBACK, port: 0, certificate, hasTcpFallback: false },
    { paths: { '/echo': { opened: echoSession } } },
  )
  try {
    const { WebTransport, transportName } = await loadWebTransport()
    const pin = { algorithm: 'sha-256', value: Buffer.from(edge.certificate.sha256, 'hex') } as const
    const session = new WebTransport(`https://${LOOPBACK}:${edge.port}/echo`, { serverCertificateHashes: [pin] })
    await session.ready
    const sent = randomBytes(SAMPLE_BYTES)
    const { readable, writable } = await session.createBidirectionalStream()
    const writer = writable.getWriter()
    await writer.write(sent)
    await writer.close()
    const hash = createHash('sha256')
    for await (const chunk of readable) hash.update(chunk)
    expectSame('echo', hash.digest('hex'), createHash('sha256').update(sent).digest('hex'))
    session.close({ closeCode: 0, reason: 'done' })
    return `${SAMPLE_BYTES} bytes there and back by ${transportName}`
  } finally {
    await edge.close({ graceMs: 100 })
  }
}

function echoSession(): QuicSessionEvents {
  return {
    streamOpened: (stream) => ({
      data(bytesView) {
        stream.write(new Uint8Array(bytesView))
        stream.grant(bytesView.length)
      },
      ended: () => stream.end(),
      drained() {},
      closed() {},
    }),
    datagram() {},
    closed() {},
  }
}

async function checkHttp(): Promise<string> {
  const names = pageAssetNames()
  const server = createServer((_request, response) => response.end(names.map((name) => readAsset(name).length).join()))
  server.listen(0, LOOPBACK)
  await once(server, 'listening')
  try {
    const { port } = server.address() as AddressInfo
    const response = await fetch(`http://${LOOPBACK}:${port}/`)
    const sizes = (await response.text()).split(',').map(Number)
    if (names.length === 0 || sizes.some((size) => !(size > 0))) throw new Error('the inspection page is not complete')
    return `${response.status} on port ${port}, ${names.length} files of the page`
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

function expectSame(what: string, found: string | undefined, expected: string): void {
  if (found !== expected)
    throw new EdgeError('EDGE_INTERNAL', `${what}: expected ${expected}, found ${found ?? 'nothing'}`)
}
