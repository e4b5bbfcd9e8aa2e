/** The timer of keep-alive, as the system shows it. */
import { readFileSync } from 'node:fs'

/** Of the fields of a connection the sixth is its timer: 02 is that of keep-alive, and behind it stand hundredths of a second. */
const KEEP_ALIVE_TIMER = /^02:([0-9A-F]+)$/

/** @returns in how many seconds the system asks for a sign of life; null when it never does. Ports on 127.0.0.1. */
export function keepAliveSeconds(serverPort: number, peerPort = 0): number | null {
  const [server, peer] = [serverPort, peerPort].map((port) => port.toString(16).toUpperCase().padStart(4, '0'))
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n')
  const line = lines.find((each) => each.includes(` 0100007F:${server} 0100007F:${peer} `))
  const left = KEEP_ALIVE_TIMER.exec(line?.trim().split(/\s+/)[5] ?? '')?.[1]
  return left === undefined ? null : Number.parseInt(left, 16) / 100
}
