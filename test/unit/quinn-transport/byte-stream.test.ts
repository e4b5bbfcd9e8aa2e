import assert from 'node:assert/strict'
import { ReadableStream, WritableStream } from 'node:stream/web'
import { test } from 'node:test'
import { ByteStream } from '../../../src/quinn-transport/byte-stream.ts'

test('a stream that is ended once it has drained ends', async () => {
  const ended = Promise.withResolvers<string>()
  const readable = new ReadableStream<Uint8Array>()
  const writable = new WritableStream<Uint8Array>({ close: () => ended.resolve('ended') })
  const stream = new ByteStream(
    { readable, writable },
    { received: () => true },
    {
      data: () => {},
      ended: () => {},
      drained: () => {
        stream.end()
        setImmediate(() => ended.resolve('left open'))
      },
      closed: () => {},
    },
  )
  assert.equal(stream.write(new Uint8Array(1024 * 1024)), false)
  assert.equal(await ended.promise, 'ended')
})
