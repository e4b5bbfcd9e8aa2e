/** Keys of a store that note under which key and nonce something was sealed, to see that no pair ever serves twice. */
import { createStoreKeys, type FileCipher, type StoreKeys } from '../../src/log/io/store-keys.ts'

export class NonceRecord {
  readonly #seen = new Set<string>()
  /** Key context and nonce of each that served twice. */
  readonly repeated: string[] = []

  get count(): number {
    return this.#seen.size
  }

  note(keyContext: string, nonce: Uint8Array): void {
    const pair = `${keyContext} ${nonce.toHex()}`
    if (this.#seen.has(pair)) this.repeated.push(pair)
    this.#seen.add(pair)
  }
}

/** As `createStoreKeys`, with every seal on record. */
export function recordingKeys(keys: readonly Uint8Array[], isSealing: boolean, record: NonceRecord): StoreKeys {
  const real = createStoreKeys(keys, isSealing)
  return {
    ...real,
    cipherFor(headerView, keyId) {
      const cipher = real.cipherFor(headerView, keyId)
      return cipher === undefined ? undefined : recording(cipher, headerView.slice(0, 60).toHex(), record)
    },
  }
}

const recording = (cipher: FileCipher, keyContext: string, record: NonceRecord): FileCipher => ({
  seal(nonce, authenticatedView, plainView, target) {
    record.note(keyContext, nonce)
    cipher.seal(nonce, authenticatedView, plainView, target)
  },
  open: (nonce, authenticatedView, sealedView) => cipher.open(nonce, authenticatedView, sealedView),
})
