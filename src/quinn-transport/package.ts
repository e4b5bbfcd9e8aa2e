/**
 * Loads @fails-components/webtransport with a QUIC transport under it: its own quiche transport where that is installed,
 * else ours over quinn.
 *
 * The package imports its transport by a fixed name while it loads. Where that name leads nowhere we resolve it to
 * `transport-module.ts` by a hook that lives only as long as this one import; in a bundle the name is an alias.
 */

import { registerHooks } from 'node:module'
import { guardHttp2Streams } from './http2-streams.ts'
import type { WebTransportPackage } from './package-api.ts'

const TRANSPORT = '@fails-components/webtransport-transport-http3-quiche'

export type TransportName = 'quinn' | 'quiche'

export interface LoadedWebTransport extends WebTransportPackage {
  readonly transportName: TransportName
}

let loading: Promise<LoadedWebTransport> | undefined

/** Loads once per process, on first use: it brings in `node:http2` and streams (about 14 MB). */
export function loadWebTransport(): Promise<LoadedWebTransport> {
  loading ??= load()
  return loading
}

async function load(): Promise<LoadedWebTransport> {
  guardHttp2Streams()
  const transportName = isQuicheInstalled() ? 'quiche' : 'quinn'
  const hook = transportName === 'quinn' && isUnbundled() ? leadToQuinn() : undefined
  try {
    const loaded: unknown = await import('@fails-components/webtransport')
    const library = loaded as WebTransportPackage
    await library.quicheLoaded
    return { ...library, transportName }
  } finally {
    hook?.deregister()
  }
}

function leadToQuinn(): { deregister(): void } {
  // Compiled for npm, the module beside this one ends in `.js`.
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  const url = new URL(`./transport-module.${extension}`, import.meta.url).href
  return registerHooks({
    resolve: (specifier, context, next) =>
      specifier === TRANSPORT ? { url, shortCircuit: true } : next(specifier, context),
  })
}

function isQuicheInstalled(): boolean {
  if (!isUnbundled()) return false
  try {
    import.meta.resolve(TRANSPORT)
    return true
  } catch {
    return false
  }
}

/** A CommonJS bundle has no `import.meta.url`. */
function isUnbundled(): boolean {
  return typeof import.meta.url === 'string' && import.meta.url !== ''
}
