/**
 * Services that other parties vouch for (`[[http.jwt.trusted_issuers]]`, Iggy's "A2A"): whoever brings a token of a trusted
 * issuer acts as the one user that the configuration names for it, never as root.
 *
 * Keys are fetched when a token names one that is not known, and anew once they are old. Anybody can name keys that do not
 * exist, so an issuer is asked once in a while at most, by one request at a time, and only so much of its answer is read.
 */
import type { Clock } from '../../clock.ts'
import { toEdgeError } from '../../errors.ts'
import { parseJson } from '../../exact-json.ts'
import type { Logger } from '../../logger.ts'
import { type IssuerKey, importIssuerKey, isValidExternalToken, readExternalToken } from './external-token.ts'
import type { TrustedIssuerSettings } from './settings.ts'

/** @returns the text behind a URL. Throws whatever goes wrong. */
export type FetchText = (url: string) => Promise<string>

const ROOT_USER_ID = 0
/** Keys that were withdrawn are refused after this time, or when the issuer can be reached again. */
const KEY_LIFE_US = 600_000_000
const MIN_FETCH_INTERVAL_US = 10_000_000
const FETCH_TIMEOUT_MS = 5_000
const MAX_KEY_SET_BYTES = 256 * 1024
const MAX_KEYS = 64

interface Issuer {
  readonly settings: TrustedIssuerSettings
  keys: ReadonlyMap<string, IssuerKey>
  fetchedAtUs: number | null
  triedAtUs: number | null
  /** It could not be reached the last time. */
  isAway: boolean
  running: Promise<void> | null
}

export class TrustedIssuers {
  private readonly clock: Clock
  private readonly clockSkew: number
  private readonly logger: Logger
  private readonly fetchText: FetchText
  private readonly issuers: ReadonlyMap<string, Issuer>

  /** @param options.clockSkew seconds by which clocks may differ. */
  constructor(
    settings: readonly TrustedIssuerSettings[],
    options: { clock: Clock; clockSkew: number; logger: Logger; fetchText?: FetchText },
  ) {
    this.clock = options.clock
    this.clockSkew = options.clockSkew
    this.logger = options.logger
    this.fetchText = options.fetchText ?? fetchBounded
    this.issuers = new Map(
      settings.map((each) => [
        withoutSlash(each.issuer),
        { settings: each, keys: new Map(), fetchedAtUs: null, triedAtUs: null, isAway: false, running: null },
      ]),
    )
  }

  /** @returns the user id that a valid token of a trusted issuer stands for; else undefined. */
  async userOf(text: string): Promise<number | undefined> {
    if (this.issuers.size === 0) return undefined
    const token = readExternalToken(text)
    const issuer = token === undefined ? undefined : this.issuers.get(withoutSlash(token.issuer))
    if (token === undefined || issuer === undefined || issuer.settings.user_id === ROOT_USER_ID) return undefined
    const key = await this.keyOf(issuer, token.keyId)
    if (key === undefined) return undefined
    const nowSeconds = Number(this.clock.wallUs() / 1_000_000n)
    const { audience, user_id } = issuer.settings
    return isValidExternalToken(token, key, { audience, clockSkew: this.clockSkew, nowSeconds }) ? user_id : undefined
  }

  private async keyOf(issuer: Issuer, keyId: string): Promise<IssuerKey | undefined> {
    const nowUs = this.clock.monotonicUs()
    const isOld = issuer.fetchedAtUs === null || nowUs - issuer.fetchedAtUs > KEY_LIFE_US
    const mayAsk = issuer.triedAtUs === null || nowUs - issuer.triedAtUs > MIN_FETCH_INTERVAL_US
    const isKnown = issuer.keys.has(keyId)
    if ((isOld || !isKnown) && (mayAsk || issuer.running !== null)) {
      const refreshing = this.refresh(issuer, nowUs)
      // Nobody waits again and again for an issuer that is away while the key of before stays good.
      if (!isKnown || !issuer.isAway) await refreshing
    }
    return issuer.keys.get(keyId)
  }

  private refresh(issuer: Issuer, nowUs: number): Promise<void> {
    issuer.triedAtUs = nowUs
    issuer.running ??= this.fetchKeys(issuer).finally(() => {
      issuer.running = null
    })
    return issuer.running
  }

  /** When the issuer cannot be reached the keys of before stay good: an edge is offline now and then. */
  private async fetchKeys(issuer: Issuer): Promise<void> {
    const { jwks_url, issuer: name } = issuer.settings
    try {
      issuer.keys = parseKeySet(await this.fetchText(jwks_url))
      issuer.fetchedAtUs = this.clock.monotonicUs()
      issuer.isAway = false
    } catch (error) {
      issuer.isAway = true
      this.logger.warn('http.issuer.unreachable', { issuer: name, error: toEdgeError(error).message })
    }
  }
}

/** @param text a JSON web key set. Keys without an id, of other kinds or too weak ones are passed over. */
export function parseKeySet(text: string): ReadonlyMap<string, IssuerKey> {
  const keys = new Map<string, IssuerKey>()
  for (const jwk of keysIn(parseJson(text)).slice(0, MAX_KEYS)) {
    if (typeof jwk !== 'object' || jwk === null || !('kid' in jwk) || typeof jwk.kid !== 'string') continue
    const key = importIssuerKey(jwk as Readonly<Record<string, unknown>>)
    if (key !== undefined) keys.set(jwk.kid, key)
  }
  return keys
}

function keysIn(document: unknown): readonly unknown[] {
  const keys = typeof document === 'object' && document !== null && 'keys' in document ? document.keys : undefined
  if (!Array.isArray(keys)) throw new TypeError('a JSON web key set has a list "keys"')
  return keys
}

async function fetchBounded(url: string): Promise<string> {
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(FETCH_TIMEOUT_MS) })
  if (!response.ok || response.body === null) throw new TypeError(`${url} answered ${response.status}`)
  const chunks: Uint8Array[] = []
  let sizeBytes = 0
  for await (const chunk of response.body) {
    sizeBytes += chunk.length
    if (sizeBytes > MAX_KEY_SET_BYTES) throw new RangeError(`${url} answered more than ${MAX_KEY_SET_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Issuers are URLs, written with a slash at the end or without. */
const withoutSlash = (issuer: string): string => issuer.replace(/\/+$/, '')
