/**
 * Devices publish over QUIC while the edge and its upstream are killed again and again: every acked reading must arrive
 * upstream once, in order per partition. Against a second edge always; against Apache Iggy's server, which forgets what it
 * acked when it is killed, where `EDGE_TEST_APACHE_080` names its binary.
 *
 * `EDGE_TEST_READINGS` sets how many readings (4,000); releases are tried with 100,000.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, connect, type Device } from '../../src/sdk/index.ts'
import { ApacheServer, apacheBinary } from '../support/apache-server.ts'
import { startEdgeProcess } from '../support/edge-process.ts'
import { freePort } from '../support/free-port.ts'

const READINGS = Number(process.env.EDGE_TEST_READINGS ?? 4000)
const DEVICES = 16
const PARTITIONS = 4
const KILLS = 5
const PAYLOAD_BYTES = 200
/** Readings of one device that wait for their ack. */
const IN_FLIGHT = 64
const DRAIN_TIMEOUT_MS = 120_000 + READINGS * 3
const apache = apacheBinary('EDGE_TEST_APACHE_080')

interface Killable {
  readonly url: string
  start(): Promise<void>
  kill(): Promise<void>
}

/** An edge that comes back on the same ports and data. */
async function killableEdge(folder: string, configuration: string) {
  const [tcp, webtransport, http] = await Promise.all([freePort(), freePort(), freePort()])
  const file = join(folder, `${tcp}.toml`)
  writeFileSync(file, configuration)
  const environment = {
    EDGE_TCP__ADDRESS: `127.0.0.1:${tcp}`,
    EDGE_WEBTRANSPORT__ADDRESS: `127.0.0.1:${webtransport}`,
    EDGE_HTTP__ADDRESS: `127.0.0.1:${http}`,
    EDGE_LOGGING__LEVEL: 'info',
  }
  let process_ = await startEdgeProcess({
    dataPath: join(folder, `data-${tcp}`),
    environment,
    arguments: ['--config', file],
  })
  return {
    url: `iggy+tcp://iggy:iggy@127.0.0.1:${tcp}`,
    webtransport: `127.0.0.1:${webtransport}`,
    certificateSha256: process_.certificateSha256,
    async start() {
      process_ = await startEdgeProcess({
        dataPath: join(folder, `data-${tcp}`),
        environment,
        arguments: ['--config', file],
      })
    },
    kill: () => process_.kill(),
  }
}

/** The number of readings every device publishes, in turn. */
const perDevice = Math.ceil(READINGS / DEVICES)

function payloadOf(device: number, sequence: number): Uint8Array {
  return new TextEncoder().encode(`${device}:${sequence}:`.padEnd(PAYLOAD_BYTES, '.'))
}

async function publishAll(device: Device, number: number, progress: { count: number }): Promise<void> {
  const alias = device.alias('sensors/readings', 'bytes')
  const waiting: Promise<unknown>[] = []
  for (let sequence = 0; sequence < perDevice; sequence++) {
    if (waiting.length >= IN_FLIGHT) await waiting.shift()
    waiting.push(device.publish(alias, payloadOf(number, sequence)).then(() => progress.count++))
  }
  await Promise.all(waiting)
}

async function readAll(client: Client, stream: string, partitionId: number): Promise<string[]> {
  const texts: string[] = []
  for (let offset = 0n; ; ) {
    const strategy = { kind: 'offset', offset } as const
    const { messages } = await client.messages.poll(stream, 'readings', { partitionId, strategy, count: 1000 })
    texts.push(...messages.map(({ payload }) => new TextDecoder().decode(payload)))
    const last = messages.at(-1)
    if (last === undefined) return texts
    offset = last.offset + 1n
  }
}

async function runWith(upstream: Killable, folder: string): Promise<void> {
  const configuration = `[[sync.upstreams]]\nname = "central"\nurl = "${upstream.url}"\nretry_delay_max = "2 s"\n[[sync.routes]]\nfrom = "sensors/*"\nto = "central:site-7/{topic}"\n`
  await using resources = new AsyncDisposableStack()
  const edge = await killableEdge(folder, configuration)
  resources.defer(() => edge.kill())
  let token = ''
  {
    await using client = await connect(edge.url)
    await client.streams.create('sensors')
    await client.topics.create('sensors', 'readings', { partitions: PARTITIONS })
    token = await client.tokens.create('devices', null)
  }
  const progress = { count: 0 }
  const devices = await Promise.all(
    Array.from({ length: DEVICES }, (_, number) =>
      connect(
        `edge+wt://${encodeURIComponent(token)}@${edge.webtransport}?device=dev-${number}&certificate_hash=${edge.certificateSha256}`,
      ),
    ),
  )
  resources.defer(async () => void (await Promise.all(devices.map((device) => device.close()))))
  const published = Promise.all(devices.map((device, number) => publishAll(device, number, progress)))
  // Awaited below; a failure before that is reported there.
  published.catch(() => {})
  const total = perDevice * DEVICES
  for (let kill = 1; kill <= KILLS; kill++) {
    const due = Math.floor((total * kill) / (KILLS + 1))
    while (progress.count < due) await pause(20)
    await edge.kill()
    await upstream.kill()
    await upstream.start()
    await edge.start()
  }
  await published

  await using local = await connect(edge.url)
  await using central = await connect(upstream.url)
  const kept: string[][] = []
  for (let partitionId = 0; partitionId < PARTITIONS; partitionId++)
    kept.push(await readAll(local, 'sensors', partitionId))
  assert.equal(new Set(kept.flat()).size, total, 'every acked reading is kept')
  assert.equal(kept.flat().length, total, 'no reading is kept twice')
  const endMs = performance.now() + DRAIN_TIMEOUT_MS
  for (const [partitionId, ours] of kept.entries()) {
    let theirs = await readAll(central, 'site-7', partitionId)
    while (theirs.length < ours.length && performance.now() < endMs) {
      await pause(500)
      theirs = await readAll(central, 'site-7', partitionId)
    }
    assert.equal(theirs.length, ours.length, `partition ${partitionId}: all upstream, once`)
    assert.deepEqual(theirs, ours, `partition ${partitionId}: in the same order`)
  }
}

describe(`${READINGS} readings from ${DEVICES} devices while edge and upstream are killed ${KILLS} times`, () => {
  it('arrive once and in order at a second edge', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'edge-kills-'))
    try {
      const central = await killableEdge(folder, '')
      await runWith(central, folder).finally(() => central.kill())
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  const skip = 'reason' in apache ? apache.reason : false
  it("arrive once and in order at Apache's server 0.8.0, which forgets what it acked", { skip }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'edge-kills-'))
    try {
      assert.ok('path' in apache)
      await using server = await ApacheServer.start(apache.path, folder)
      const url = `iggy+tcp://iggy:iggy@127.0.0.1:${server.tcpPort}`
      await runWith({ url, start: () => server.startAgain(), kill: () => server.kill() }, folder)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
