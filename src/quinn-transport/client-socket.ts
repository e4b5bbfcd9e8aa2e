/**
 * Whether the addon's client will get its socket. It takes a UDP socket of IPv6 for both families and ends the whole process
 * where there is none: on a kernel without IPv6, or when no file can be opened any more. So one is opened beforehand.
 */
import { createSocket } from 'node:dgram'
import { EdgeError } from '../errors.ts'

/** @throws {EdgeError} EDGE_FEATURE_UNAVAILABLE. */
export function needClientSocket(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp6')
    socket.once('error', (cause) => {
      socket.close()
      reject(new EdgeError('EDGE_FEATURE_UNAVAILABLE', `QUIC needs a UDP socket of IPv6: ${cause.message}`, { cause }))
    })
    socket.bind(0, '::', () => socket.close(resolve))
  })
}
