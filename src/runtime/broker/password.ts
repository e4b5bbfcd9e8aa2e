/**
 * Passwords as PHC strings: `$argon2id$v=19$m=…,t=…,p=…$salt$hash`. Shell around `node:crypto`.
 *
 * Hashes run one after another: each takes `MEMORY_KIB`, and a hundred clients that come back at once must not take a
 * hundred times that. Parameters of stored hashes are bounded, because a database is input like any other.
 */
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
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
    return formatPhc({ ...parameters, hashBytes: await this.derive(password, parameters) })
  }

  /** @param phc undefined for an unknown user: answers false after the time a real check takes. */
  async verify(password: string, phc: string | undefined): Promise<boolean> {
    const stored = (phc === undefined ? undefined : parsePhc(phc)) ?? this.nobody
    const found = await this.derive(password, stored)
    return timingSafeEqual(found, stored.hashBytes) && stored !== this.nobody
  }

  private derive(password: string, phc: Phc): Promise<Uint8Array> {
    if (this.waitingCount >= MAX_WAITING) {
      throw new EdgeError('EDGE_LIMIT_REACHED', `logins waiting: ${this.waitingCount}, at most ${MAX_WAITING}`)
    }
    this.waitingCount++
    const run = this.tail.then(() => argon2id(password, phc))
    this.tail = run.then(
      () => this.waitingCount--,
      () => this.waitingCount--,
    )
    return run
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
