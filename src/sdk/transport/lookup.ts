/**
 * Host names to addresses without `getaddrinfo`: that blocks one of the few threads which also write files, so a name
 * server that drops packets would stall local appends. c-ares asks over its own sockets instead; its resolver is made anew
 * each time, since a gateway's name servers change with its network.
 */
import { Resolver, lookup as systemLookup } from 'node:dns/promises'
import { readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { EdgeError, messageOf, systemCodeOf } from '../../errors.ts'
import { sleep } from '../sleep.ts'

export interface HostAddress {
  readonly address: string
  readonly family: 4 | 6
}

const HOSTS_FILE = '/etc/hosts'
const QUERY_TIMEOUT_MS = 2000
const QUERY_TRIES = 3
/** The second answer has so long from the first one on (RFC 8305 proposes less, for links of a fifth of the round trip). */
const OTHER_FAMILY_PATIENCE_MS = 250

/** The name servers answer, and know no such name. */
const UNKNOWN_NAME = new Set(['ENOTFOUND', 'ENODATA'])

/** At most one lookup of the whole process uses the system's resolver. */
let systemLookups: Promise<unknown> = Promise.resolve()

/** @throws {EdgeError} EDGE_UPSTREAM_UNREACHABLE, reason `name`. */
export async function lookupHost(host: string, signal: AbortSignal): Promise<readonly HostAddress[]> {
  const literal = isIP(host)
  if (literal !== 0) return [{ address: host, family: literal === 6 ? 6 : 4 }]
  if (host === 'localhost' || host.endsWith('.localhost')) {
    return [
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ]
  }
  const fromFile = addressesInHosts(await readFile(HOSTS_FILE, 'utf8').catch(() => ''), host)
  if (fromFile.length > 0) return fromFile
  try {
    const addresses = host.endsWith('.local') ? await askSystem(host) : await askBoth(host, signal)
    if (addresses.length > 0) return addresses
    throw new EdgeError('EDGE_UPSTREAM_UNREACHABLE', `name lookup of ${host}: no addresses`, {
      details: { reason: 'name' },
    })
  } catch (cause) {
    if (cause instanceof EdgeError) throw cause
    const text = messageOf(cause)
    throw new EdgeError('EDGE_UPSTREAM_UNREACHABLE', `name lookup of ${host}: ${text}`, {
      cause,
      details: { reason: 'name' },
    })
  }
}

/** The system also knows search domains and other services than DNS; where name servers answer, it does not hang for long. */
async function askBoth(host: string, signal: AbortSignal): Promise<HostAddress[]> {
  try {
    return await askNameServers(host, signal)
  } catch (error) {
    if (!UNKNOWN_NAME.has(systemCodeOf(error))) throw error
    return await askSystem(host)
  }
}

/** @param servers instead of the system's, for tests. */
export async function askNameServers(host: string, signal: AbortSignal, servers?: string[]): Promise<HostAddress[]> {
  const resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, maxTimeout: QUERY_TIMEOUT_MS, tries: QUERY_TRIES })
  if (servers !== undefined) resolver.setServers(servers)
  const cancel = (): void => resolver.cancel()
  signal.addEventListener('abort', cancel, { once: true })
  try {
    const questions = [resolver.resolve4(host), resolver.resolve6(host)] as const
    const answers = Promise.allSettled(questions)
    // Some name servers drop questions for IPv6: who has one answer does not wait for the other until it times out.
    const isAnswered = await Promise.any(questions).then(
      () => true,
      () => false,
    )
    if (isAnswered) await Promise.race([answers, sleep(OTHER_FAMILY_PATIENCE_MS, signal)])
    resolver.cancel()
    const [fours, sixes] = await answers
    if (fours.status === 'rejected' && sixes.status === 'rejected') throw fours.reason
    const found: HostAddress[] = []
    if (sixes.status === 'fulfilled') for (const address of sixes.value) found.push({ address, family: 6 })
    if (fours.status === 'fulfilled') for (const address of fours.value) found.push({ address, family: 4 })
    return found
  } finally {
    signal.removeEventListener('abort', cancel)
  }
}

async function askSystem(host: string): Promise<HostAddress[]> {
  const before = systemLookups
  const { promise, resolve } = Promise.withResolvers<void>()
  systemLookups = promise
  try {
    await before
    const found = await systemLookup(host, { all: true })
    return found.map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }))
  } finally {
    resolve()
  }
}

/** @returns the addresses that a hosts file gives to a name. */
export function addressesInHosts(text: string, host: string): HostAddress[] {
  const found: HostAddress[] = []
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    const family = isIP(address)
    if (family !== 0 && names.includes(host)) found.push({ address, family: family === 6 ? 6 : 4 })
  }
  return found
}
