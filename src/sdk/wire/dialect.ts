/**
 * The generations of Iggy's binary protocol that the wire speaks.
 *
 * `classic` is server and SDK 0.7 and 0.8: 8-byte frame heads, no session. `vsr` is protocol 0.11.0 (server 0.9, SDK
 * 0.11.0): 256-byte heads, sessions, option blocks. What differs in framing and messages lies in a folder per dialect;
 * what differs in one command lies beside the command as `perDialect`. A further generation is one more member here, one
 * more folder, and the compiler then names every place that has to decide.
 */
export type Dialect = 'classic' | 'vsr'

/** Packed as major << 20 | minor << 10 | patch: 0.11.0, the one protocol version that V1 to V5 announce. */
export const PROTOCOL_VERSION = packVersion(0, 11, 0)

/** @returns the packed form of a protocol version; each part is 0..1023. */
export function packVersion(major: number, minor: number, patch: number): number {
  return ((major << 20) | (minor << 10) | patch) >>> 0
}

/** The server's gate: from its own version with patch 0 up to every patch of its own minor version. */
export function isVersionAccepted(packed: number): boolean {
  return packed >= PROTOCOL_VERSION && packed >>> 10 === PROTOCOL_VERSION >>> 10
}
