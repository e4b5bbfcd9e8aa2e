import { createServer } from 'node:net'

const FIRST = 10_000
const COUNT = 20_000
/** Ports that a process gives in turn before it comes into those of another one. */
const PORTS_A_PROCESS = 100

/** Test files run beside each other, in processes of their own: each begins elsewhere, and gives no port twice. */
let next = (process.pid * PORTS_A_PROCESS) % COUNT

/**
 * A TCP port of loopback that is free now, for servers that are stopped and started again on it. Below the range the kernel
 * takes source ports from: else some client's connection may sit on it while the server is away.
 */
export async function freePort(): Promise<number> {
  for (let tried = 0; tried < COUNT; tried++) {
    const port = FIRST + next
    next = (next + 1) % COUNT
    if (await isFree(port)) return port
  }
  throw new Error(`no port from ${FIRST} to ${FIRST + COUNT - 1} is free`)
}

async function isFree(port: number): Promise<boolean> {
  // Who takes it for the server that is away, and connects, is sent away at once.
  const server = createServer((socket) => socket.destroy())
  const isListening = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
  })
  if (isListening) await new Promise((resolve) => server.close(resolve))
  return isListening
}
