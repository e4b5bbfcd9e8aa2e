/**
 * What a fleet costs the flash: 100 devices, one reading of 100 bytes of JSON a second each, counted at the block layer.
 * The device's whole traffic is counted, so let nothing else write while this runs.
 */
import { readFileSync, statSync } from 'node:fs'
import { CODE } from '../../src/sdk/wire/codes.ts'
import { encodeRecords } from '../../src/sdk/wire/messages.ts'
import { frameOf, loginFrame, RawClient } from './support/load.ts'
import { startEdgeServer } from './support/servers.ts'

const DEVICES = 100
const SECONDS = 60
const SECTOR_BYTES = 512
/** One sync a second: what a flash budget of about this size gives under sustained load. */
const ENVIRONMENT = { EDGE_LOG__LINGER_MIN_US: '10000', EDGE_LOG__FLASH_BUDGET_PER_DAY: '700 MiB' }

export async function benchFlash(): Promise<void> {
  await using server = await startEdgeServer(ENVIRONMENT)
  const sectors = sectorCounterOf(server.dataPath)
  if (sectors === null)
    return console.log('\nflash: the data folder lies on no block device, so nothing can be counted')
  const client = await RawClient.open(server.host, server.port)
  await client.ask(loginFrame(server.username, server.password))
  await client.ask(frameOf({ code: CODE.createStream, body: { name: 'bench', options: [] } }))
  const topic = { stream: 'bench', name: 'readings', partitionsCount: DEVICES, options: [], replicationFactor: 1 }
  await client.ask(frameOf({ code: CODE.createTopic, body: topic }))
  client.close()
  const devices = await Promise.all(
    Array.from({ length: DEVICES }, async () => {
      const device = await RawClient.open(server.host, server.port)
      await device.ask(loginFrame(server.username, server.password))
      return device
    }),
  )
  const beforeSectors = sectors()
  let payloadBytes = 0
  const startedMs = performance.now()
  await Promise.all(
    devices.map(async (device, index) => {
      for (let second = 0; second < SECONDS; second++) {
        const dueMs = startedMs + second * 1000 + (index * 1000) / DEVICES
        await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - performance.now())))
        const payload = reading(index, second)
        payloadBytes += payload.length
        const batch = encodeRecords([{ payload, originUs: BigInt(Date.now()) * 1000n }])
        const partitioning = { kind: 'partition', partitionId: index } as const
        await device.ask(
          frameOf({ code: CODE.sendMessages, body: { stream: 'bench', topic: 'readings', partitioning, batch } }),
        )
      }
    }),
  )
  const writtenBytes = (sectors() - beforeSectors) * SECTOR_BYTES
  for (const device of devices) device.close()
  console.log(
    `\nflash: ${DEVICES} devices x 1 reading/s x ${Math.round(payloadBytes / DEVICES / SECONDS)} B for ${SECONDS} s`,
  )
  console.log(
    `  block layer ${writtenBytes} B for ${payloadBytes} B of payload: ${(writtenBytes / payloadBytes).toFixed(2)} B per B`,
  )
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
