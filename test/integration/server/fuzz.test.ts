/**
 * Random and mutated bytes against a whole server: nothing crashes, hangs or grows, and an honest client is served beside
 * it. The rounds are few here; `test/unit/sdk/wire` gives each decoder its million.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { ByteSession, ByteTransport } from '../../../src/runtime/server/index.ts'
import { CODE } from '../../../src/sdk/wire/codes.ts'
import { ClassicClient } from '../../support/protocol-clients.ts'
import { startProtocolServer, type TestServer } from '../../support/protocol-server.ts'
import { SeededRandom } from '../../support/seeded-random.ts'

const ROUNDS = 1500
const FOLDER = new URL('../../fixtures/iggy/transcripts/', import.meta.url)

/** Recorded requests of one session: what a mutation begins with. */
function requestsOf(name: string): Buffer[] {
  const transcript = JSON.parse(readFileSync(fileURLToPath(new URL(`${name}.json`, FOLDER)), 'utf8'))
  const frames: { dir: string; hex?: string }[] = transcript.connections.flatMap(
    (each: { frames: unknown[] }) => each.frames,
  )
  return frames.flatMap(({ dir, hex }) => (dir === 'c' && hex && !hex.endsWith('...') ? [Buffer.from(hex, 'hex')] : []))
}

class Sink implements ByteTransport {
  readonly kind = 'tcp'
  readonly address = '127.0.0.1:1'
  readonly unsentBytes = 0
  writtenBytes = 0
  isEnded = false
  session: ByteSession | null = null

  write(bytes: Uint8Array): boolean {
    this.writtenBytes += bytes.length
    return true
  }

  pause(): void {}
  resume(): void {}

  end(): void {
    this.isEnded = true
  }

  destroy(): void {
    this.isEnded = true
  }
}

function open(running: TestServer): { sink: Sink; session: ByteSession } {
  const sink = new Sink()
  return { sink, session: running.server.acceptByteSession(sink) }
}

function mutate(frame: Buffer, random: SeededRandom): Buffer {
  const bytes = Buffer.from(frame)
  switch (random.below(4)) {
    case 0:
      for (let count = 1 + random.below(4); count > 0; count--) bytes[random.below(bytes.length)] = random.below(256)
      return bytes
    case 1:
      return bytes.subarray(0, random.below(bytes.length))
    case 2:
      return Buffer.concat([bytes, Buffer.from(Array.from({ length: random.below(64) }, () => random.below(256)))])
    default: {
      const at = random.below(bytes.length)
      bytes.fill(random.below(256), at, Math.min(bytes.length, at + 1 + random.below(8)))
      return bytes
    }
  }
}

/** Lets whatever was begun come to its end. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('random bytes on a new connection end it or wait for more, and never take the server along', async () => {
  await using running = await startProtocolServer()
  using honest = await ClassicClient.connect(running.listener.port)
  const random = new SeededRandom(1)
  for (let round = 0; round < ROUNDS; round++) {
    const { session } = open(running)
    session.receive(
      Buffer.from(Array.from({ length: random.below(600) }, () => (random.chance(0.5) ? 0 : random.below(256)))),
    )
    session.closed()
  }
  assert.equal((await honest.ask(CODE.ping, null)).outcome, 'ok')
  assert.equal(running.server.connectionCount, 1)
})

for (const [dialect, names] of [
  ['classic', ['classic-rust-0.10.0', 'classic-go-0.8.0']],
  ['vsr', ['v5-rust-0.11.0-part1', 'v5-rust-0.11.0-part2']],
] as const) {
  test(`mutated ${dialect} requests after a login are answered or refused, and the server goes on`, async () => {
    await using running = await startProtocolServer()
    using honest = await ClassicClient.connect(running.listener.port)
    const requests = names.flatMap(requestsOf)
    const login = requests.find((frame) =>
      dialect === 'classic' ? frame.readUInt32LE(4) === CODE.loginUser : frame[176] === 1,
    )
    assert.ok(login)
    const random = new SeededRandom(2)
    // A login costs a hash: many requests share one, until a frame ends the connection.
    let { sink, session } = open(running)
    session.receive(login)
    for (let round = 0; round < ROUNDS; round++) {
      if (sink.isEnded || random.chance(0.01)) {
        session.closed()
        const next = open(running)
        sink = next.sink
        session = next.session
        session.receive(login)
      }
      const frame: Buffer = requests[random.below(requests.length)] ?? login
      if (frame !== login) session.receive(mutate(frame, random))
      if (round % 50 === 0) await turn()
    }
    session.closed()
    await turn()
    assert.equal((await honest.ask(CODE.ping, null)).outcome, 'ok')
    const streams = await honest.ask(CODE.getStreams, null)
    assert.equal(streams.outcome, 'ok')
  })
}
