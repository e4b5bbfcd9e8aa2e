/**
 * A self-signed X.509 v3 certificate for an ECDSA P-256 key, as browsers accept it by its hash
 * (`serverCertificateHashes`: P-256, version 3, valid for at most 14 days). Pure: key, random serial number, times and the
 * signature function come from outside.
 */
import {
  bitString,
  boolean,
  explicit,
  implicit,
  integer,
  objectIdentifier,
  octetString,
  sequence,
  set,
  time,
  utf8String,
} from './der.ts'

const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2'
const COMMON_NAME = '2.5.4.3'
const SUBJECT_ALT_NAME = '2.5.29.17'
const BASIC_CONSTRAINTS = '2.5.29.19'
const KEY_USAGE = '2.5.29.15'
const EXTENDED_KEY_USAGE = '2.5.29.37'
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1'
/** `GeneralName` choices. */
const DNS_NAME = 2
const IP_ADDRESS = 7
const DIGITAL_SIGNATURE = Uint8Array.of(0x80)
const VERSION_3 = Uint8Array.of(2)

export interface SelfSignedSpec {
  readonly commonName: string
  readonly dnsNames: readonly string[]
  /** 4 or 16 bytes each. */
  readonly ipAddresses: readonly Uint8Array[]
  /** `SubjectPublicKeyInfo` of the key, DER. */
  readonly publicKeyDer: Uint8Array
  /** Up to 20 random bytes. */
  readonly serialBytes: Uint8Array
  readonly notBeforeMs: number
  readonly notAfterMs: number
  /** ECDSA with SHA-256, signature as DER. */
  sign(bytes: Uint8Array): Uint8Array
}

/** @returns the certificate, DER. */
export function encodeSelfSigned(spec: SelfSignedSpec): Uint8Array {
  const algorithm = sequence(objectIdentifier(ECDSA_WITH_SHA256))
  const name = sequence(set(sequence(objectIdentifier(COMMON_NAME), utf8String(spec.commonName))))
  const toBeSigned = sequence(
    explicit(0, integer(VERSION_3)),
    integer(spec.serialBytes),
    algorithm,
    name,
    sequence(time(spec.notBeforeMs), time(spec.notAfterMs)),
    name,
    spec.publicKeyDer,
    explicit(3, sequence(...extensions(spec))),
  )
  return sequence(toBeSigned, algorithm, bitString(spec.sign(toBeSigned)))
}

function extensions(spec: SelfSignedSpec): Uint8Array[] {
  const names = [
    ...spec.dnsNames.map((name) => implicit(DNS_NAME, new TextEncoder().encode(name))),
    ...spec.ipAddresses.map((address) => implicit(IP_ADDRESS, address)),
  ]
  return [
    extension(BASIC_CONSTRAINTS, true, sequence()), // not a certificate authority
    extension(KEY_USAGE, true, bitString(DIGITAL_SIGNATURE, 7)),
    extension(EXTENDED_KEY_USAGE, false, sequence(objectIdentifier(SERVER_AUTH))),
    extension(SUBJECT_ALT_NAME, false, sequence(...names)),
  ]
}

function extension(id: string, isCritical: boolean, value: Uint8Array): Uint8Array {
  const critical = isCritical ? [boolean(true)] : [] // false is the default, which DER leaves out
  return sequence(objectIdentifier(id), ...critical, octetString(value))
}
