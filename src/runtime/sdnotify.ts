/**
 * Tells systemd how the service is (`sd_notify(3)`), without an addon: Node's own `node:ffi` sends the datagram, in 0.1 ms;
 * where it is missing, `systemd-notify(1)` does. Outside systemd nothing happens.
 */
import { spawn } from 'node:child_process'
import { cFunctions } from '../c-library.ts'
import { MAX_TIMER_MS } from '../long-timer.ts'

export interface ServiceNotifier {
  /** The start goes on: it may take as long as it does so. Called as often as it may be, told every few seconds. */
  starting(): void
  /** All listeners accept and the log is open: units ordered after this one start now. */
  ready(): void
  /** Still alive; due at least every `watchdogIntervalMs`. */
  watchdog(): void
  /** One line for `systemctl status`. */
  status(text: string): void
  stopping(): void
  /** How often systemd wants to hear `watchdog`: half of what it waits; null when it does not watch. */
  readonly watchdogIntervalMs: number | null
}

const AF_UNIX = 1
const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0o2000000
const MSG_NOSIGNAL = 0x4000
/** `struct sockaddr_un`: the family, then at most 108 bytes of path. */
const SOCKET_PATH_MAX_BYTES = 108

/** The start is given up when nothing is heard of it for so long, which is more than one file or folder takes. */
const START_STEP_MAX_US = 120_000_000
const START_TOLD_INTERVAL_MS = 5000

type Send = (message: string) => void

/** @param environment `process.env` of the process that systemd started. */
export function createServiceNotifier(environment: NodeJS.ProcessEnv = process.env): ServiceNotifier {
  const socketPath = environment.NOTIFY_SOCKET
  const send = socketPath ? sender(socketPath) : () => {}
  let isStarting = true
  let toldMs = Number.NEGATIVE_INFINITY
  return {
    starting() {
      if (!isStarting) return
      const nowMs = performance.now()
      if (nowMs - toldMs < START_TOLD_INTERVAL_MS) return
      toldMs = nowMs
      send(`EXTEND_TIMEOUT_USEC=${START_STEP_MAX_US}\nSTATUS=starting`)
    },
    ready() {
      isStarting = false
      send('READY=1')
    },
    watchdog: () => send('WATCHDOG=1'),
    status: (text) => send(`STATUS=${oneLine(text)}`),
    stopping: () => send('STOPPING=1'),
    watchdogIntervalMs: socketPath ? watchdogIntervalMs(environment) : null,
  }
}

/** `WATCHDOG_PID` names the process that is meant, so that a child does not answer in its place. */
function watchdogIntervalMs(environment: NodeJS.ProcessEnv): number | null {
  const timeoutUs = Number(environment.WATCHDOG_USEC ?? 0)
  const isForUs = environment.WATCHDOG_PID === undefined || Number(environment.WATCHDOG_PID) === process.pid
  return isForUs && timeoutUs > 0 ? Math.min(MAX_TIMER_MS, timeoutUs / 2000) : null
}

function sender(socketPath: string): Send {
  try {
    return socketSender(socketPath)
  } catch {
    return commandSender
  }
}

/** @throws {Error} when this Node has no `node:ffi`, or the C library no sockets. */
function socketSender(socketPath: string): Send {
  const address = socketAddress(socketPath)
  const { socket: openSocket, sendto } = cFunctions({
    socket: { arguments: ['i32', 'i32', 'i32'], return: 'i32' },
    sendto: { arguments: ['i32', 'buffer', 'u64', 'i32', 'buffer', 'u32'], return: 'i64' },
  })
  const socket = openSocket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)
  if (socket < 0) throw new Error('no datagram socket')
  return (message) => {
    const bytes = Buffer.from(message)
    // A message that systemd does not take is not worth stopping for: the next one comes with the watchdog.
    sendto(socket, bytes, BigInt(bytes.length), MSG_NOSIGNAL, address, address.length)
  }
}

/** @returns the bytes of a `sockaddr_un`; a path that begins with `@` lies in the abstract namespace. */
function socketAddress(path: string): Buffer {
  const pathBytes = Buffer.from(path.startsWith('@') ? `\0${path.slice(1)}` : `${path}\0`)
  if (pathBytes.length > SOCKET_PATH_MAX_BYTES) throw new Error('the path of the socket is too long')
  const family = Buffer.alloc(2)
  family.writeUInt16LE(AF_UNIX)
  return Buffer.concat([family, pathBytes])
}

/** Works with `NotifyAccess=all` only, as the message comes from a child. */
const commandSender: Send = (message) => {
  const child = spawn('systemd-notify', message.split('\n'), { stdio: 'ignore' })
  child.on('error', () => {}) // not installed: systemd will say that it heard nothing
  child.unref()
}

function oneLine(text: string): string {
  return text.replaceAll('\n', ' ')
}
