/** Decides which listeners may be reached from other machines. Pure. */
import type { Config } from './config/schema.ts'
import { parseAddress } from './config/value.ts'

const LOOPBACK_HOSTS = new Set(['localhost', '::1'])

export const isLoopback = (host: string): boolean => LOOPBACK_HOSTS.has(host) || /^127\.\d+\.\d+\.\d+$/.test(host)

/**
 * Passwords and tokens must not cross a network in the clear unless the operator says so.
 *
 * @returns one line for each listener that would do so.
 */
export function findExposedListeners(config: Config): readonly string[] {
  if (config.system.allow_plaintext) return []
  const plain = [
    {
      section: 'tcp',
      isEnabled: config.tcp.enabled,
      isSecure: config.tcp.tls_enabled && config.tcp.tls_required,
      address: config.tcp.address,
    },
    {
      section: 'websocket',
      isEnabled: config.websocket.enabled,
      isSecure: config.websocket.tls_enabled,
      address: config.websocket.address,
    },
    {
      section: 'http',
      isEnabled: config.http.enabled,
      isSecure: config['http.tls'].enabled,
      address: config.http.address,
    },
  ]
  return plain
    .filter(
      ({ isEnabled, isSecure, address }) => isEnabled && !isSecure && !isLoopback(parseAddress(address)?.host ?? ''),
    )
    .map(
      ({ section, address }) =>
        `${section}.address: found "${address}" without TLS, expected an address of this machine only, TLS, or system.allow_plaintext = true`,
    )
}
