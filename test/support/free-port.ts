import { createServer } from 'node:net'

const FIRST = 10_000
const COUNT = 20_000

/**
 * A TCP port of loopback that is free now, for servers that are stopped and started again on it. Below the range the kernel
 * takes source ports from: else some client's connection may sit on it while the server is away.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
    })
    if (!isFree) continue
    await new Promise((resolve) => server.close(resolve))
    return port
  }
}
