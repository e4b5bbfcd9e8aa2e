import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { unacknowledgedBytesOf, unsentBytesOf } from '../../../src/runtime/unsent-bytes.ts'
import { eventually } from '../../support/eventually.ts'

/** More than the system's buffers hold. */
const LARGE_BYTES = 64 * 1024 * 1024
const PART_BYTES = 8 * 1024 * 1024

test('how a peer takes one large write shows in what Node holds, and in what the system holds', async (context) => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const peer = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [socket] = (await once(server, 'connection')) as [Socket]
  context.after(() => {
    peer.destroy()
    socket.destroy()
    server.close()
  })
  assert.deepEqual([unsentBytesOf(socket), unacknowledgedBytesOf(socket)], [0, 0])
  socket.on('error', () => {}) // the peer goes first
  socket.write(new Uint8Array(LARGE_BYTES))
  await eventually(() => (unacknowledgedBytesOf(socket) ?? 0) > 0)
  const before = { unsent: unsentBytesOf(socket), unacknowledged: unacknowledgedBytesOf(socket) }
  assert.ok(before.unsent > PART_BYTES)
  let takenBytes = 0
  let goalBytes = PART_BYTES
  peer.on('data', (bytes: Buffer) => {
    takenBytes += bytes.length
    if (takenBytes > goalBytes) peer.pause()
  })
  await eventually(() => takenBytes > PART_BYTES && unsentBytesOf(socket) < before.unsent)
  goalBytes = LARGE_BYTES
  peer.resume()
  await eventually(() => takenBytes === LARGE_BYTES)
  await eventually(() => unsentBytesOf(socket) === 0 && unacknowledgedBytesOf(socket) === 0)
})
