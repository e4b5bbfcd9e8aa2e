/**
 * The load generator of `iggy-edge bench` as a process of its own, so that the server has its core.
 *
 *   node test/bench/support/load.ts '{"host":"127.0.0.1","port":8090,...}'
 *
 * Prints `measuring` when logins and warming up are over, and at the end one line of JSON.
 */
import { type LoadOrder, runLoad } from '../../../src/runtime/bench/load.ts'
import { loginFrame as loginFrameOf, RawClient } from '../../../src/runtime/bench/raw-client.ts'
import { DEFAULT_CONNECTION_OPTIONS, type Dial, tcpDial } from '../../../src/sdk/index.ts'

export interface ProcessOrder extends LoadOrder {
  readonly host: string
  readonly port: number
  readonly username: string
  readonly password: string
}

const dialTo = (host: string, port: number): Dial => tcpDial({ host, port, ...DEFAULT_CONNECTION_OPTIONS })

export const openRawClient = (host: string, port: number): Promise<RawClient> => RawClient.open(dialTo(host, port))

export const loginFrame = (username: string, password: string): Uint8Array =>
  loginFrameOf({ kind: 'password', username, password })

if (import.meta.main) {
  const { host, port, username, password, ...order } = JSON.parse(process.argv[2] ?? '{}') as ProcessOrder
  const credentials = { kind: 'password', username, password } as const
  const target = { dial: dialTo(host, port), credentials, dialect: 'classic' } as const
  console.log(JSON.stringify(await runLoad(order, target, { onMeasuring: () => console.log('measuring') })))
}
