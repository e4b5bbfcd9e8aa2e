/**
 * Connections with a client whose frames and TLS messages are changed before they are sealed. The server must survive as it
 * is, or close: never throw, never run away, never hold more than its limits.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withMutations } from '../../../../support/quic/frame-fuzz.ts'
import { echo, QuicPair, readAll } from '../../../../support/quic/quic-pair.ts'
import { SeededRandom } from '../../../../support/seeded-random.ts'

const FROM = Number(process.env.QUIC_FUZZ_FROM ?? 1)
const SEEDS = Number(process.env.QUIC_FUZZ_SEEDS ?? 150)
const RATES = [0.02, 0.1, 0.5, 1]
const ROUNDS = 60
const LIMITS = {
  connectionWindowBytes: 65_536,
  streamWindowBytes: 16_384,
  maxBidirectionalStreams: 10,
  maxUnidirectionalStreams: 5,
}
/** Far more than a round of any of these connections sends. */
const DATAGRAMS_PER_ROUND = 100

/** @returns packets changed. */
function lie(seed: number): number {
  const random = new SeededRandom(seed)
  const rate = RATES[seed % RATES.length] ?? 1
  const pair = new QuicPair({ server: LIMITS })
  const { client, server } = pair
  server.onStream = (stream) => {
    if (stream.isBidirectional) echo(stream)
    else stream.onData = () => readAll(stream)
  }
  client.onConnected = () => use(pair)
  let mutated = 0
  for (let round = 0; round < ROUNDS && !server.isFinished; round++) {
    // From the first packet on, after the handshake, or now and then.
    const isLying = seed % 3 === 0 || (seed % 3 === 1 && client.isConnected) || (seed % 3 === 2 && random.chance(0.5))
    mutated += withMutations(random, isLying ? rate : 0, () => pair.flushClient())
    for (const { bytes } of pair.toServer.splice(0)) server.receive(bytes, pair.clientAddress, pair.nowMs)
    const hasMore = server.flush(pair.nowMs, (bytes, to) => pair.toClient.push({ bytes, to }), DATAGRAMS_PER_ROUND)
    assert.equal(hasMore, false, `seed ${seed}: the server runs away`)
    for (const { bytes, to } of pair.toClient.splice(0)) client.receive(bytes, to, pair.nowMs)
    pair.nowMs += round % 10 === 9 ? 400 : 10
    for (const connection of [client, server]) {
      if (connection.deadlineMs <= pair.nowMs) connection.tick(pair.nowMs)
    }
    const { unreadBytes, streamCount } = server.stats
    assert.ok(unreadBytes <= LIMITS.connectionWindowBytes, `seed ${seed}: ${unreadBytes} unread bytes`)
    assert.ok(streamCount <= LIMITS.maxBidirectionalStreams + LIMITS.maxUnidirectionalStreams, `seed ${seed}`)
  }
  return mutated
}

/** A bit of everything, so that there is something to change. */
function use(pair: QuicPair): void {
  for (let index = 0; index < 6; index++) {
    const stream = pair.client.openStream(index < 4 ? 'bidirectional' : 'unidirectional')
    if (stream === null) continue
    stream.onData = () => readAll(stream)
    stream.write(new Uint8Array(3000))
    if (index === 1) stream.reset(3)
    else if (index === 2) stream.stopSending(4)
    else stream.end()
  }
  pair.client.updateKeys()
}

test(`${SEEDS} clients that lie behind the right keys cannot break the server`, () => {
  let mutated = 0
  for (let seed = FROM; seed < FROM + SEEDS; seed++) mutated += lie(seed)
  assert.ok(mutated > SEEDS, `${mutated} packets were changed`)
})
