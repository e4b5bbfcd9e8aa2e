/**
 * Tells the drafts of the VSR dialect apart that share one protocol version. V4 and V5 are served alike; V1 to V3 have
 * other bodies and are refused.
 */
import { packVersion } from '../dialect.ts'

export type VsrDraft = 'V1' | 'V2' | 'V3' | 'V5' | 'V6'

/** SDK versions of the old drafts; each draft was one pre-release. */
const OLD_DRAFTS: Readonly<Record<string, Readonly<Record<string, VsrDraft>>>> = {
  'rust-sdk': { '0.11.0-edge.1': 'V1', '0.11.0-edge.2': 'V2', '0.11.0-edge.3': 'V3' },
  'node-sdk': {
    '0.8.1-edge.3': 'V1',
    '0.8.1-edge.4': 'V1',
    '0.9.0-edge.1': 'V1',
    '0.10.0-edge.1': 'V1',
    '0.10.0-edge.2': 'V2',
    '0.10.0-edge.3': 'V3',
  },
  'go-sdk': { '0.9.0-edge.1': 'V1', '0.9.0-edge.2': 'V2', '0.9.0-edge.3': 'V3' },
  'csharp-sdk': { '0.9.0-edge.1': 'V1', '0.9.0-edge.2': 'V2', '0.9.0-edge.3': 'V3' },
}

/** V1 clients put the namespace of metadata where others have the session. */
const V1_NAMESPACE = 1n << 63n

/**
 * @param session of the register head.
 * @param login what the register body says of the client.
 * @returns the draft the client speaks; V4 and V5 are both "V5", as is whatever is unknown.
 */
export function draftOf(
  session: bigint,
  login: { readonly protocolVersion: number; readonly sdkName: string; readonly sdkVersion: string },
): VsrDraft {
  if (session === V1_NAMESPACE) return 'V1'
  if (login.protocolVersion >= packVersion(0, 12, 0)) return 'V6'
  return OLD_DRAFTS[login.sdkName]?.[login.sdkVersion] ?? 'V5'
}
