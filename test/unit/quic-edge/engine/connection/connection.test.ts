import assert from 'node:assert/strict'
import { test } from 'node:test'
import { echo, QuicPair, readAll } from '../../../../support/quic/quic-pair.ts'

test('a request is echoed on a stream, and both sides are clean afterwards', () => {
  const pair = new QuicPair()
  pair.server.onStream = echo
  pair.run()
  assert.ok(pair.client.isConnected && pair.server.isConnected)
  const stream = pair.open()
  let text = ''
  let isDone = false
  stream.onData = () => {
    text += Buffer.from(readAll(stream)).toString()
  }
  stream.onDone = () => {
    isDone = true
  }
  stream.write(Buffer.from('hello'))
  stream.end()
  pair.wait(100)
  assert.equal(text, 'hello')
  assert.ok(stream.isEnded && isDone)
  assert.equal(pair.client.stats.streamCount, 0)
  assert.equal(pair.server.stats.streamCount, 0)
  assert.equal(pair.server.stats.bytesInFlight, 0)
  assert.equal(pair.client.stats.bytesInFlight, 0)
})
