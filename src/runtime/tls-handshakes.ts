/**
 * Connections of an HTTPS server that have not begun to speak TLS, or not ended their handshake. The server's own lists do
 * not have them yet, but its close waits for them: a peer that only connected would hold up a stop for two minutes.
 */
import type { Socket } from 'node:net'
import type { Server } from 'node:tls'

/** @returns ends those that are in their handshake now. */
export function watchHandshakes(server: Server): () => void {
  /** By the peer's address: the socket that speaks TLS is another one than the socket that was accepted. */
  const sockets = new Map<string, Socket>()
  server.on('connection', (socket: Socket) => {
    const peer = peerOf(socket)
    sockets.set(peer, socket)
    socket.once('close', () => {
      if (sockets.get(peer) === socket) sockets.delete(peer)
    })
  })
  server.on('secureConnection', (secured) => sockets.delete(peerOf(secured)))
  return () => {
    for (const socket of sockets.values()) socket.destroy()
  }
}

const peerOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`
