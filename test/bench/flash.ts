/**
 * What a fleet costs the flash: 100 devices, one reading of 100 bytes of JSON a second each. Bytes written are counted at the
 * block layer while the flash budget is used up, which makes one sync a second; to be kept: 2 bytes a byte of payload. The
 * device's whole traffic is counted, so let nothing else write while this runs, or name a file system of its own by TMPDIR.
 *
 * Then the same readings as they lie in segments, after an hour of them was repacked; to be kept: 25 bytes a reading.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { frameOf, type RawClient } from '../../src/runtime/bench/raw-client.ts'
import { CODE } from '../../src/sdk/wire/codes.ts'
import { encodeRecords } from '../../src/sdk/wire/messages.ts'
import { loginFrame, openRawClient } from './support/load.ts'
import { type MeasuredServer, startEdgeServer } from './support/servers.ts'

const DEVICES = 100
const SECONDS = 60
const SECTOR_BYTES = 512
/** So little that it is used up at once: syncs keep their longest distance, a second. */
const BUDGET_USED_UP = { EDGE_LOG__FLASH_BUDGET_PER_DAY: '1 MiB' }
/** Readings of a device that are stored for the second figure, and how soon they are repacked. */
const STORED_READINGS = 600
const REPACKED_AT_ONCE = { EDGE_LOG__DEFAULT_DURABILITY: 'buffered', EDGE_LOG__REPACK_AFTER: '1 s' }
const REPACK_WAIT_MS = 15_000

export async function benchFlash(): Promise<void> {
  await benchWritten()
  await benchStored()
}

async function benchWritten(): Promise<void> {
  await using server = await startEdgeServer(BUDGET_USED_UP)
  const sectors = sectorCounterOf(server.dataPath)
  if (sectors === null)
    return console.log('\nflash: the data folder lies on no block device, so nothing can be counted')
  const devices = await devicesOf(server)
  // What making the topic left in the cache is not what the readings cost.
  execFileSync('sync')
  const beforeSectors = sectors()
  let payloadBytes = 0
  const startedMs = performance.now()
  await Promise.all(
    devices.map(async (device, index) => {
      for (let second = 0; second < SECONDS; second++) {
        const dueMs = startedMs + second * 1000 + (index * 1000) / DEVICES
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - performance.now())))
        const sizeBytes = await publish(device, index, second)
        payloadBytes += sizeBytes
      }
    }),
  )
  const writtenBytes = (sectors() - beforeSectors) * SECTOR_BYTES
  for (const device of devices) device.close()
  console.log(
    `\nflash: ${DEVICES} devices x 1 reading/s x ${Math.round(payloadBytes / DEVICES / SECONDS)} B for ${SECONDS} s, one sync a second`,
  )
  console.log(
    `  block layer ${writtenBytes} B for ${payloadBytes} B of payload: ${(writtenBytes / payloadBytes).toFixed(2)} B per B   (2)`,
  )
}

async function benchStored(): Promise<void> {
  await using server = await startEdgeServer(REPACKED_AT_ONCE)
  const devices = await devicesOf(server)
  await Promise.all(
    devices.map(async (device, index) => {
      for (let second = 0; second < STORED_READINGS; second++) await publish(device, index, second)
    }),
  )
  for (const device of devices) device.close()
  await new Promise((resolve) => setTimeout(resolve, REPACK_WAIT_MS))
  const storedBytes = segmentBytesBelow(server.dataPath)
  const readingCount = DEVICES * STORED_READINGS
  console.log(
    `  segments ${storedBytes} B for ${readingCount} readings: ${(storedBytes / readingCount).toFixed(1)} B a reading   (25)`,
  )
}

/** A partition and a connection for each. */
async function devicesOf(server: MeasuredServer): Promise<readonly RawClient[]> {
  const admin = await openRawClient(server.host, server.port)
  await admin.ask(loginFrame(server.username, server.password))
  await admin.ask(frameOf({ code: CODE.createStream, body: { name: 'bench', options: [] } }))
  const topic = { stream: 'bench', name: 'readings', partitionsCount: DEVICES, options: [], replicationFactor: 1 }
  await admin.ask(frameOf({ code: CODE.createTopic, body: topic }))
  admin.close()
  return Promise.all(
    Array.from({ length: DEVICES }, async () => {
      const device = await openRawClient(server.host, server.port)
      await device.ask(loginFrame(server.username, server.password))
      return device
    }),
  )
}

/** @returns bytes of payload. */
async function publish(device: RawClient, index: number, second: number): Promise<number> {
  const payload = reading(index, second)
  const batch = encodeRecords([{ payload, originUs: BigInt(Date.now()) * 1000n }])
  const partitioning = { kind: 'partition', partitionId: index } as const
  await device.ask(
    frameOf({ code: CODE.sendMessages, body: { stream: 'bench', topic: 'readings', partitioning, batch } }),
  )
  return payload.length
}

function segmentBytesBelow(folder: string): number {
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.seg'))
  return files.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
}

function reading(device: number, second: number): Uint8Array {
  const value = (20 + Math.sin((second + device) / 10) * 5).toFixed(2)
  const text = `{"device":"dev-${String(device).padStart(4, '0')}","sensor":"temperature","unit":"Cel","value":${value},"seq":${second}}`
  return new TextEncoder().encode(text.padEnd(100, ' '))
}

/** @returns a function that reads the sectors written to the device below `path`, or null where there is none. */
function sectorCounterOf(path: string): (() => number) | null {
  const { dev } = statSync(path)
  const major = ((dev >> 8) & 0xfff) | 0
  const minor = (dev & 0xff) | ((dev >> 12) & 0xfff00)
  const file = `/sys/dev/block/${major}:${minor}/stat`
  try {
    readFileSync(file)
  } catch {
    return null
  }
  return () => Number(readFileSync(file, 'utf8').trim().split(/\s+/)[6])
}
