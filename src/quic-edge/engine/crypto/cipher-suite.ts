/** The cipher suites of TLS 1.3 that QUIC may use (RFC 9001 section 5.3), with what is particular to each. Pure. */

export interface CipherSuite {
  /** As on the wire. */
  readonly id: number
  readonly name: string
  readonly hash: 'sha256' | 'sha384'
  /** Of hash and secrets. */
  readonly hashSize: number
  readonly aead: 'aes-128-gcm' | 'aes-256-gcm' | 'chacha20-poly1305'
  /** Of the packet key and of the header protection key. */
  readonly keySize: number
  readonly headerCipher: 'aes-128-ecb' | 'aes-256-ecb' | 'chacha20'
  /** Packets that one key may seal (RFC 9001 section 6.6): keys are updated before. */
  readonly sealLimit: number
  /** Packets that may fail to open in one connection, over all its keys: then it ends. */
  readonly openFailureLimit: number
}

export const AES_128_GCM: CipherSuite = {
  id: 0x1301,
  name: 'TLS_AES_128_GCM_SHA256',
  hash: 'sha256',
  hashSize: 32,
  aead: 'aes-128-gcm',
  keySize: 16,
  headerCipher: 'aes-128-ecb',
  sealLimit: 2 ** 23,
  openFailureLimit: 2 ** 52,
}

export const AES_256_GCM: CipherSuite = {
  id: 0x1302,
  name: 'TLS_AES_256_GCM_SHA384',
  hash: 'sha384',
  hashSize: 48,
  aead: 'aes-256-gcm',
  keySize: 32,
  headerCipher: 'aes-256-ecb',
  sealLimit: 2 ** 23,
  openFailureLimit: 2 ** 52,
}

export const CHACHA20_POLY1305: CipherSuite = {
  id: 0x1303,
  name: 'TLS_CHACHA20_POLY1305_SHA256',
  hash: 'sha256',
  hashSize: 32,
  aead: 'chacha20-poly1305',
  keySize: 32,
  headerCipher: 'chacha20',
  // More than there are packet numbers.
  sealLimit: 2 ** 62,
  openFailureLimit: 2 ** 36,
}

/** In order of preference. */
export const CIPHER_SUITES: readonly CipherSuite[] = [AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305]
