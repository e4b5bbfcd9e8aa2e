/** HKDF as TLS 1.3 uses it (RFC 5869, RFC 8446 section 7.1). Every output fits into one block of the hash. */
import { createHmac } from 'node:crypto'
import { assert } from '../../../assert.ts'
import type { CipherSuite } from './cipher-suite.ts'

type HashName = CipherSuite['hash']

const NO_CONTEXT = new Uint8Array()
/** Labels are few, and the same for every connection. */
const LABELS = new Map<string, Uint8Array>()

/** HKDF-Extract. */
export function extract(hash: HashName, salt: Uint8Array, keyMaterial: Uint8Array): Uint8Array {
  return createHmac(hash, salt).update(keyMaterial).digest()
}

/**
 * HKDF-Expand-Label.
 *
 * ```
 * HkdfLabel: [size:2] [label:1+n, "tls13 " first] [context:1+n]
 * ```
 *
 * @param label without its prefix, such as `quic key`. @param size bytes wanted, at most those of the hash.
 */
export function expandLabel(
  hash: HashName,
  secret: Uint8Array,
  label: string,
  size: number,
  context: Uint8Array = NO_CONTEXT,
): Uint8Array {
  const name = labelBytes(label)
  const info = new Uint8Array(2 + 1 + name.length + 1 + context.length + 1)
  info[1] = size
  info[2] = name.length
  info.set(name, 3)
  info[3 + name.length] = context.length
  info.set(context, 4 + name.length)
  info[info.length - 1] = 1 // number of the one block
  const block = createHmac(hash, secret).update(info).digest()
  assert(size <= block.length, `HKDF output ${label} fits into one block: ${size} of ${block.length} bytes`)
  return size === block.length ? block : block.subarray(0, size)
}

function labelBytes(label: string): Uint8Array {
  const known = LABELS.get(label)
  if (known !== undefined) return known
  const bytes = new TextEncoder().encode(`tls13 ${label}`)
  LABELS.set(label, bytes)
  return bytes
}
