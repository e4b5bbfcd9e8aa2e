/** Where handshakes and recovery of QUIC have stood still before: each of these was once found by simulation. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addressOf, echo, QuicPair, readAll } from '../../../../support/quic/quic-pair.ts'
import { SeededRandom } from '../../../../support/seeded-random.ts'

/** Lets the client's request through the echo, whatever it takes. */
function mustAnswer(pair: QuicPair, waitMs = 10_000): void {
  const stream = pair.open()
  let text = ''
  stream.onData = () => {
    text += Buffer.from(readAll(stream)).toString()
  }
  stream.write(Buffer.from('ping'))
  stream.end()
  pair.wait(waitMs)
  assert.equal(text, 'ping')
}

test('a client whose address changed before the handshake was confirmed is found again', () => {
  const pair = new QuicPair()
  pair.server.onStream = echo
  pair.client.onConnected = () => {
    // Its Finished comes from the new address; what the server answers goes to the old one.
    pair.clientAddress = addressOf('192.0.2.1', 50_000)
  }
  pair.run()
  assert.ok(pair.client.isConnected)
  mustAnswer(pair)
  assert.equal(pair.server.peer.port, 50_000)
})

test('handshake bytes do not wait for a congestion window that data has filled', () => {
  const pair = new QuicPair()
  pair.server.onStream = echo
  pair.client.onConnected = () => {
    pair.open().write(new Uint8Array(100_000))
  }
  while (!pair.client.isConnected) {
    pair.flush()
    pair.deliver()
  }
  // The client's Finished is lost, and all of the data that fills the window.
  pair.flushClient()
  pair.toServer.splice(0)
  assert.ok(pair.client.stats.bytesInFlight > 10_000)
  // Of two probes only the second arrives, without the Finished. Acknowledged, it makes the Finished a loss.
  pair.nowMs = pair.client.deadlineMs
  pair.client.tick(pair.nowMs)
  pair.flushClient()
  assert.ok(pair.toServer.length >= 2)
  pair.toServer.splice(0, 1)
  pair.deliver()
  assert.equal(pair.server.isConnected, false)
  pair.wait(9000)
  assert.ok(pair.server.isConnected)
  mustAnswer(pair)
})

test('a client learns from any acknowledgement of data that the handshake is confirmed', () => {
  const pair = new QuicPair()
  pair.server.onStream = echo
  while (!pair.server.isConnected) {
    pair.flush()
    pair.deliver()
  }
  // HANDSHAKE_DONE is lost; the next packets of the server only acknowledge.
  pair.flushServer()
  assert.ok(pair.toClient.length > 0)
  pair.toClient.splice(0)
  assert.equal(pair.client.updateKeys(), false)
  for (let count = 0; count < 2; count++) {
    pair.client.ping()
    pair.flushClient()
    pair.deliver()
  }
  pair.flushServer()
  pair.deliver()
  assert.equal(pair.client.updateKeys(), true, 'confirmed')
})

test('a client that missed HANDSHAKE_DONE follows a server that has updated its keys since', () => {
  const pair = new QuicPair()
  pair.server.onStream = echo
  while (!pair.server.isConnected) {
    pair.flush()
    pair.deliver()
  }
  pair.flushServer()
  pair.toClient.splice(0)
  // What follows arrives: the server gets an acknowledgement, and with it leave to update.
  pair.server.ping()
  pair.flushServer()
  for (const { bytes, to } of pair.toClient.splice(0)) pair.client.receive(bytes, to, pair.nowMs)
  pair.nowMs += 30
  pair.client.tick(pair.nowMs)
  pair.flushClient()
  pair.deliver()
  assert.ok(pair.server.updateKeys())
  pair.wait(5000)
  assert.equal(pair.client.stats.keyUpdates, 1)
  mustAnswer(pair)
})

test('a client gives its Initial packets up when it answers with Handshake packets, whatever travels with them', () => {
  const pair = new QuicPair()
  pair.server.onStream = echo
  pair.client.onConnected = () => pair.open().write(new Uint8Array(10))
  pair.flushClient()
  const [hello] = pair.toServer.splice(0)
  assert.ok(hello)
  // It probes with the same hello before the server answers; the repetition is never acknowledged.
  pair.nowMs = pair.client.deadlineMs
  pair.client.tick(pair.nowMs)
  pair.flushClient()
  assert.ok(pair.toServer.splice(0).length > 0)
  pair.server.receive(hello.bytes, pair.clientAddress, pair.nowMs)
  pair.wait(5000)
  assert.ok(pair.server.isConnected)
  assert.equal(pair.client.stats.bytesInFlight, 0)
})

test('packets of the old key phase that were under way during an update of our own are read', () => {
  const pair = new QuicPair()
  pair.server.onStream = echo
  pair.wait(100)
  const stream = pair.open()
  let size = 0
  stream.onData = () => {
    size += readAll(stream).length
  }
  stream.write(new Uint8Array(3000))
  stream.end()
  pair.flushClient()
  assert.ok(pair.server.updateKeys())
  pair.deliver()
  assert.equal(pair.server.stats.rejectedPackets, 0)
  pair.wait(100)
  assert.equal(size, 3000)
})

test('whatever instant both sides are looked at, no deadline lies in the past after it was met', () => {
  const pair = new QuicPair({ nowMs: 1e6 / 3, client: { idleTimeoutMs: 0 }, server: { idleTimeoutMs: 0 } })
  pair.server.onStream = echo
  const random = new SeededRandom(7)
  for (let step = 0; step < 400; step++) {
    pair.flush()
    for (const queue of [pair.toServer, pair.toClient]) {
      for (let index = queue.length - 1; index >= 0; index--) if (random.chance(0.3)) queue.splice(index, 1)
    }
    pair.deliver()
    pair.flush()
    if (step === 200 && pair.client.isConnected) pair.open().write(new Uint8Array(50_000))
    pair.nowMs = Math.min(pair.client.deadlineMs, pair.server.deadlineMs, pair.nowMs + 1000 / 3)
    for (const connection of [pair.client, pair.server]) {
      if (connection.deadlineMs > pair.nowMs) continue
      connection.tick(pair.nowMs)
      connection.flush(
        pair.nowMs,
        (bytes, to) => {
          const queue = connection === pair.client ? pair.toServer : pair.toClient
          queue.push({ bytes, to })
        },
        100,
      )
      assert.ok(connection.deadlineMs > pair.nowMs, `step ${step}`)
    }
  }
  assert.ok(pair.client.isConnected)
})
