/** Datagrams whose source no honest socket has. The socket is handed them as the kernel would: sending such needs privileges. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:dgram'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { silentLogger } from '../../../src/logger.ts'
import { EndpointSecrets } from '../../../src/quic-edge/engine/endpoint/endpoint-secrets.ts'
import { Router } from '../../../src/quic-edge/engine/endpoint/router.ts'
import { type Entry, UdpEndpoint } from '../../../src/quic-edge/engine/endpoint/udp-endpoint.ts'
import { SAMPLE_CLIENT_INITIAL } from '../../support/quic/sample-packets.ts'

/** @returns the socket that `work` makes. */
async function socketMadeBy(work: () => Promise<unknown>): Promise<Socket> {
  const made: Socket[] = []
  const note = (message: unknown) => made.push((message as { socket: Socket }).socket)
  subscribe('udp.socket', note)
  try {
    await work()
  } finally {
    unsubscribe('udp.socket', note)
  }
  return made[0] ?? assert.fail('no socket was made')
}

test('a datagram from port 0 is not answered, whatever it holds', async (context) => {
  const secrets = new EndpointSecrets(Uint8Array.of(1), new Uint8Array())
  const limits = { maxHandshakes: 8, retryAboveHandshakes: 0, maxResetsPerSecond: 8 }
  const router = new Router<Entry>({ limits, secrets, random: randomBytes, isSealed: () => true, admit: () => true })
  const accept = () => assert.fail('a connection was made')
  const socket = await socketMadeBy(async () => {
    const endpoint = await UdpEndpoint.open({
      host: '127.0.0.1',
      port: 0,
      reusePort: false,
      router,
      logger: silentLogger,
      nowMs: () => performance.now(),
      accept,
      forgotten: () => {},
      resetToken: (idView) => secrets.resetToken(idView),
    })
    context.after(() => endpoint.close())
  })
  const initial = Buffer.from(SAMPLE_CLIENT_INITIAL, 'hex')
  const otherVersion = Buffer.from(initial)
  otherVersion[4] = 2
  const short = Buffer.alloc(100, 0x40)
  for (const datagram of [initial, otherVersion, short]) {
    socket.emit('message', datagram, { address: '127.0.0.1', port: 0, family: 'IPv4', size: datagram.length })
  }
  assert.equal(socket.getSendQueueCount(), 0)
})
