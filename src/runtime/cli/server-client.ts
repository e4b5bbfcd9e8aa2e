/** Connects a command to its server. Loaded by commands when they run: it brings the SDK. */
import { EdgeError } from '../../errors.ts'
import { Client, type ConnectionTarget, dialOf } from '../../sdk/index.ts'
import type { CommandContext } from './command.ts'
import { EdgeHttp } from './edge-http.ts'
import type { Values } from './grammar.ts'
import { askPassword } from './prompt.ts'
import { type ServerAddress, serverAddressOf, targetBeside } from './server-address.ts'

/** @throws {EdgeError} usage errors, EDGE_UPSTREAM_UNREACHABLE, EDGE_CREDENTIALS_INVALID .. */
export async function connectClient(values: Values, context: CommandContext): Promise<Client> {
  const address = await addressWithPassword(values, context)
  if (address.credentials === null)
    throw new EdgeError('EDGE_UNAUTHENTICATED', 'this needs a user: no credentials were given')
  const target = { ...(address.target ?? (await askTarget(address, context.signal))), credentials: address.credentials }
  const client = new Client(target, dialOf(target))
  await client.open()
  return client
}

export async function connectHttp(values: Values, context: CommandContext): Promise<EdgeHttp> {
  const { httpUrl, credentials } = await addressWithPassword(values, context)
  return new EdgeHttp(httpUrl, credentials, context.signal)
}

async function addressWithPassword(values: Values, context: CommandContext): Promise<ServerAddress> {
  const address = serverAddressOf(values, context)
  const username = address.userWithoutPassword
  if (username === null) return address
  const password = await askPassword(username, context.signal)
  return { ...address, credentials: { kind: 'password', username, password } }
}

/** Only an HTTP address is known: the server says on which port it speaks the binary protocol. */
async function askTarget({ httpUrl, credentials }: ServerAddress, signal: AbortSignal): Promise<ConnectionTarget> {
  const http = new EdgeHttp(httpUrl, credentials, signal)
  const found = (await http.succeed({ method: 'GET', path: '/cluster/metadata' })) as ClusterMetadata | null
  const port = found?.nodes?.[0]?.endpoints?.tcp
  if (typeof port === 'number' && port > 0) return targetBeside(httpUrl, port)
  throw new EdgeError('EDGE_UPSTREAM_REFUSED', `${httpUrl} does not tell where it listens for TCP`)
}

/** As much as is needed of what the server says of itself. */
interface ClusterMetadata {
  readonly nodes?: readonly { readonly endpoints?: { readonly tcp?: unknown } }[]
}
