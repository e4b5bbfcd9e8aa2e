/**
 * How far the peer of a socket is with what was written to it. Of one large write Node itself tells only when all of it has
 * gone; how far it is stands in the socket's handle, over TLS in the handle below. They are not part of Node's interface: where
 * they are not there, a write counts as a whole.
 *
 * From there it goes into the system's own buffer, which grows to 4 MiB and takes more only when a third of it is empty: over a
 * slow link nothing moves for a minute, though the peer takes bytes all the while. What it acknowledges the system tells, too.
 */
import { readFileSync, readlinkSync } from 'node:fs'
import type { Duplex } from 'node:stream'

/** @returns what was not handed to the system: 0 when all was; else a number that changes as it is. */
export function unsentBytesOf(socket: Duplex): number {
  const queued = partOf(handleOf(socket), 'writeQueueSize')
  return socket.writableLength + (typeof queued === 'number' ? queued : 0)
}

/** @returns what the system keeps because the peer has not acknowledged it; null where it does not tell. */
export function unacknowledgedBytesOf(socket: Duplex): number | null {
  const descriptor = partOf(handleOf(socket), 'fd')
  if (typeof descriptor !== 'number' || descriptor < 0) return null
  try {
    const inode = /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${descriptor}`))?.[1]
    return inode === undefined ? null : (systemQueues().get(inode) ?? null)
  } catch {
    return null
  }
}

/** What was read in this turn: whoever is looked at with others is looked up there. */
let queues: ReadonlyMap<string, number> | null = null

function systemQueues(): ReadonlyMap<string, number> {
  if (queues !== null) return queues
  queues = new Map([...parseSystemQueues(readTable('tcp')), ...parseSystemQueues(readTable('tcp6'))])
  setImmediate(() => {
    queues = null
  })
  return queues
}

function readTable(name: 'tcp' | 'tcp6'): string {
  try {
    return readFileSync(`/proc/self/net/${name}`, 'latin1')
  } catch {
    return ''
  }
}

/** @returns by the socket's inode what waits to be acknowledged. @see proc_pid_net(5) */
export function parseSystemQueues(text: string): [inode: string, sizeBytes: number][] {
  return text.split('\n').flatMap((line): [string, number][] => {
    const fields = line.trim().split(/\s+/)
    const sizeBytes = Number.parseInt(fields[4] ?? '', 16)
    const inode = fields[9] ?? ''
    return Number.isNaN(sizeBytes) || inode === '' ? [] : [[inode, sizeBytes]]
  })
}

function handleOf(socket: Duplex): unknown {
  const handle = partOf(socket, '_handle')
  return partOf(handle, '_parent') ?? handle
}

function partOf(whole: unknown, name: string): unknown {
  return typeof whole === 'object' && whole !== null ? Reflect.get(whole, name) : undefined
}
