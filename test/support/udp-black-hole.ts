/**
 * A UDP port that takes everything and answers nothing, as a network that blocks QUIC. `release` answers the last attempt
 * with a version negotiation packet that offers no version we know: the client gives up at once instead of after 30 s.
 */
import { createSocket, type RemoteInfo } from 'node:dgram'

export interface BlackHole {
  readonly packetCount: number
  release(): Promise<void>
}

export async function openBlackHole(port: number): Promise<BlackHole> {
  const socket = createSocket('udp4')
  const attempts = new Map<string, { packet: Uint8Array; from: RemoteInfo }>()
  let packetCount = 0
  socket.on('message', (packet, from) => {
    packetCount++
    if ((packet[0] ?? 0) & 0x80) attempts.set(`${from.address}:${from.port}`, { packet, from })
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.bind(port, '127.0.0.1', resolve)
  })
  return {
    get packetCount() {
      return packetCount
    },
    async release() {
      for (const { packet, from } of attempts.values()) {
        await new Promise((resolve) => socket.send(versionNegotiation(packet), from.port, from.address, resolve))
      }
      await new Promise<void>((resolve) => socket.close(() => resolve()))
    },
  }
}

/** RFC 9000 section 17.2.1: the connection ids of the packet, exchanged, and one reserved version. */
function versionNegotiation(initial: Uint8Array): Uint8Array {
  const destinationSize = initial[5] ?? 0
  const destination = initial.subarray(6, 6 + destinationSize)
  const sourceSize = initial[6 + destinationSize] ?? 0
  const source = initial.subarray(7 + destinationSize, 7 + destinationSize + sourceSize)
  const versions = [0x1a, 0x2a, 0x3a, 0x4a]
  return Uint8Array.from([0x80, 0, 0, 0, 0, sourceSize, ...source, destinationSize, ...destination, ...versions])
}
