/**
 * The keys of a store and the ciphers of its files. Keys are never logged, printed or part of an error; what may be told
 * is a key's id, which follows from the key and says nothing about it.
 */
import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import { EdgeError } from '../../errors.ts'
import { KEY_CONTEXT_SIZE, TAG_SIZE } from '../core/sealed-body.ts'

export const KEY_SIZE = 32

const ALGORITHM = 'aes-256-gcm'
const CHECK_LABEL = new TextEncoder().encode('iggy-edge key check')
const CHECK_SIZE = 16
const NO_SALT = new Uint8Array(0)

/** Seals and opens the bodies of one file. */
export interface FileCipher {
  /** Writes ciphertext and tag to `target`, `TAG_SIZE` bytes more than `plainView`. */
  seal(nonce: Uint8Array, authenticatedView: Uint8Array, plainView: Uint8Array, target: Uint8Array): void
  /** @throws EDGE_DECRYPT_FAILED: another key, or bytes that were changed together with their checksum. */
  open(nonce: Uint8Array, authenticatedView: Uint8Array, sealedView: Uint8Array): Uint8Array
}

export interface StoreKeys {
  /** Id of the key that new files are sealed with; 0: they are plain. */
  readonly currentId: number
  /** Check values of all keys: what `store.json` notes to tell a wrong key before anything is opened. */
  readonly checks: readonly string[]
  has(keyId: number): boolean
  /** @param headerView header of the file, at least 60 bytes. @returns undefined for a plain file. */
  cipherFor(headerView: Uint8Array, keyId: number): FileCipher | undefined
}

/** A store without keys: everything is plain. */
export const noKeys: StoreKeys = createStoreKeys([], false)

/**
 * @param keys 32 bytes each; the first is the current one.
 * @param isSealing whether new files are sealed; else the keys only open what was sealed before.
 */
export function createStoreKeys(keys: readonly Uint8Array[], isSealing: boolean): StoreKeys {
  const known = new Map<number, KeyObject>()
  const checks: string[] = []
  for (const key of keys) {
    const check = Buffer.from(hkdfSync('sha256', key, NO_SALT, CHECK_LABEL, CHECK_SIZE))
    const text = check.toString('hex')
    known.set(keyIdOf(text), createSecretKey(key))
    checks.push(text)
  }
  const [first] = checks
  return {
    currentId: isSealing && first !== undefined ? keyIdOf(first) : 0,
    checks,
    has: (keyId) => known.has(keyId),
    cipherFor(headerView, keyId) {
      if (keyId === 0) return undefined
      return new AesGcm(known.get(keyId), headerView.slice(0, KEY_CONTEXT_SIZE), keyId)
    },
  }
}

/** Id that files name: the first four bytes of the check value, never 0. */
export const keyIdOf = (check: string): number => Number.parseInt(check.slice(0, 8), 16) || 1

export const formatKeyId = (keyId: number): string => keyId.toString(16).padStart(8, '0')

class AesGcm implements FileCipher {
  readonly #master: KeyObject | undefined
  readonly #context: Uint8Array
  readonly #keyId: number
  /** Derived when it is needed first: most files are known by their headers alone. */
  #derived: KeyObject | undefined

  constructor(master: KeyObject | undefined, context: Uint8Array, keyId: number) {
    this.#master = master
    this.#context = context
    this.#keyId = keyId
  }

  seal(nonce: Uint8Array, authenticatedView: Uint8Array, plainView: Uint8Array, target: Uint8Array): void {
    const cipher = createCipheriv(ALGORITHM, this.#key(), nonce)
    cipher.setAAD(authenticatedView)
    target.set(cipher.update(plainView), 0)
    cipher.final()
    target.set(cipher.getAuthTag(), plainView.length)
  }

  open(nonce: Uint8Array, authenticatedView: Uint8Array, sealedView: Uint8Array): Uint8Array {
    const bodySize = sealedView.length - TAG_SIZE
    if (bodySize < 0) throw this.#failed('is too short to be sealed')
    const decipher = createDecipheriv(ALGORITHM, this.#key(), nonce)
    decipher.setAAD(authenticatedView)
    decipher.setAuthTag(sealedView.subarray(bodySize))
    const plain = decipher.update(sealedView.subarray(0, bodySize))
    try {
      decipher.final()
    } catch (cause) {
      throw this.#failed('does not open with its key', cause)
    }
    return plain
  }

  #key(): KeyObject {
    if (this.#master === undefined) throw this.#failed('was sealed with a key that was not given')
    this.#derived ??= createSecretKey(Buffer.from(hkdfSync('sha256', this.#master, NO_SALT, this.#context, KEY_SIZE)))
    return this.#derived
  }

  #failed(text: string, cause?: unknown): EdgeError {
    const details = { keyId: formatKeyId(this.#keyId) }
    return new EdgeError('EDGE_DECRYPT_FAILED', `a body ${text} (key ${details.keyId})`, { details, cause })
  }
}
