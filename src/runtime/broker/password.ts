/**
 * Passwords as PHC strings: `$argon2id$v=19$m=…,t=…,p=…$salt$hash`. Shell around `node:crypto`.
 *
 * Hashes run one after another: each takes `MEMORY_KIB`, and a hundred clients that come back at once must not take a
 * hundred times that. Nor need they wait for a hundred hashes: a password that was right is known again by a keyed digest.
 * Parameters of stored hashes are bounded, because a database is input like any other.
 */
import { argon2, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { EdgeError } from '../../errors.ts'

/** OWASP's argon2id with the least memory that keeps the strength of its first recommendation (7 MiB, 5 passes). */
const MEMORY_KIB = 7168
const PASSES = 5
const LANES = 1
const SALT_BYTES = 16
const HASH_BYTES = 32
const MAX_MEMORY_KIB = 65_536
const MAX_PASSES = 16
/** Logins that wait their turn; one more is told to come back. */
const MAX_WAITING = 512
/** Users whose password is known again without a hash; the one that was checked first goes first. */
const MAX_REMEMBERED = 256
const DIGEST_KEY_BYTES = 32

export interface Phc {
  readonly memoryKib: number
  readonly passes: number
  readonly lanes: number
  readonly saltBytes: Uint8Array
  readonly hashBytes: Uint8Array
}

export class PasswordHasher {
  private tail: Promise<unknown> = Promise.resolve()
  private waitingCount = 0
  private readonly remembered = new RememberedPasswords()
  /** Verified for users that do not exist: its hash takes the time of a real one. */
  private readonly nobody: Phc = {
    memoryKib: MEMORY_KIB,
    passes: PASSES,
    lanes: LANES,
    saltBytes: randomBytes(SALT_BYTES),
    hashBytes: randomBytes(HASH_BYTES),
  }

  async hash(password: string): Promise<string> {
    const parameters = { ...this.nobody, saltBytes: randomBytes(SALT_BYTES) }
    return formatPhc({ ...parameters, hashBytes: await this.inTurn(() => argon2id(password, parameters)) })
  }

  /** @param phc undefined for an unknown user: answers false after the time a real check takes. */
  async verify(password: string, phc: string | undefined): Promise<boolean> {
    const { remembered } = this
    if (phc !== undefined && remembered.fits(password, phc)) return true
    const parsed = phc === undefined ? undefined : parsePhc(phc)
    return await this.inTurn(async () => {
      // Whoever waited for its turn may come with what the one before it has brought.
      if (phc !== undefined && remembered.fits(password, phc)) return true
      const stored = parsed ?? this.nobody
      const found = await argon2id(password, stored)
      if (!timingSafeEqual(found, stored.hashBytes) || phc === undefined || parsed === undefined) return false
      remembered.add(password, phc)
      return true
    })
  }

  private inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.waitingCount >= MAX_WAITING) {
      throw new EdgeError('EDGE_LIMIT_REACHED', `logins waiting: ${this.waitingCount}, at most ${MAX_WAITING}`)
    }
    this.waitingCount++
    const run = this.tail.then(work)
    this.tail = run.then(
      () => this.waitingCount--,
      () => this.waitingCount--,
    )
    return run
  }
}

/** Passwords that fitted a stored hash, as digests under a key of this process. Another password means another hash. */
class RememberedPasswords {
  private readonly key = randomBytes(DIGEST_KEY_BYTES)
  private readonly digestByHash = new Map<string, Uint8Array>()

  fits(password: string, phc: string): boolean {
    const known = this.digestByHash.get(phc)
    return known !== undefined && timingSafeEqual(known, this.digest(password, phc))
  }

  add(password: string, phc: string): void {
    this.digestByHash.set(phc, this.digest(password, phc))
    const [oldest] = this.digestByHash.keys()
    if (this.digestByHash.size > MAX_REMEMBERED && oldest !== undefined) this.digestByHash.delete(oldest)
  }

  private digest(password: string, phc: string): Uint8Array {
    return createHmac('sha256', this.key).update(`${phc}\0${password}`).digest()
  }
}

function argon2id(password: string, phc: Phc): Promise<Uint8Array> {
  const parameters = {
    message: Buffer.from(password),
    nonce: phc.saltBytes,
    parallelism: phc.lanes,
    tagLength: phc.hashBytes.length,
    memory: phc.memoryKib,
    passes: phc.passes,
  }
  return new Promise((resolve, reject) => {
    argon2('argon2id', parameters, (error, hash) => {
      if (error === null) resolve(hash)
      else reject(new EdgeError('EDGE_INTERNAL', `argon2id failed: ${error.message}`, { cause: error }))
    })
  })
}

function formatPhc(phc: Phc): string {
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64').replaceAll('=', '')
  const parameters = `m=${phc.memoryKib},t=${phc.passes},p=${phc.lanes}`
  return `$argon2id$v=19$${parameters}$${base64(phc.saltBytes)}$${base64(phc.hashBytes)}`
}

const PHC = /^\$argon2id\$v=19\$m=(\d{1,6}),t=(\d{1,2}),p=(\d)\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{16,86})$/

/** @returns undefined for what is no argon2id string or asks for more than a gateway should give. */
export function parsePhc(text: string): Phc | undefined {
  const match = PHC.exec(text)
  if (match === null) return undefined
  const [, memory, passes, lanes, salt, hash] = match
  const memoryKib = Number(memory)
  const phc = {
    memoryKib,
    passes: Number(passes),
    lanes: Number(lanes),
    saltBytes: Buffer.from(salt ?? '', 'base64'),
    hashBytes: Buffer.from(hash ?? '', 'base64'),
  }
  const isBounded = memoryKib <= MAX_MEMORY_KIB && phc.passes <= MAX_PASSES && phc.passes > 0 && phc.lanes > 0
  return isBounded && memoryKib >= 8 * phc.lanes ? phc : undefined
}
