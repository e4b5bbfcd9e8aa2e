/** User headers as the command line writes them: `key:kind:value,key:kind:value`. Pure. */
import {
  type HeaderKind,
  type HeaderValue,
  headerScalarOf,
  headerValueOf,
  stringHeader,
} from '../../sdk/wire/header-values.ts'
import type { UserHeader } from '../../sdk/wire/user-headers.ts'
import { usageError } from './grammar.ts'

/** How a value of each kind must look; beyond these it would lose its meaning in silence. */
const FORMS: Readonly<Record<HeaderKind, RegExp>> = {
  raw: /^([0-9a-fA-F]{2})+$/,
  string: /^.+$/s,
  bool: /^(true|false)$/,
  int8: /^-?\d{1,3}$/,
  int16: /^-?\d{1,5}$/,
  int32: /^-?\d{1,10}$/,
  int64: /^-?\d{1,19}$/,
  int128: /^-?\d{1,39}$/,
  uint8: /^\d{1,3}$/,
  uint16: /^\d{1,5}$/,
  uint32: /^\d{1,10}$/,
  uint64: /^\d{1,20}$/,
  uint128: /^\d{1,39}$/,
  float32: /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i,
  float64: /^-?\d+(\.\d+)?(e[+-]?\d+)?$/i,
}

/** @throws {EdgeError} a usage error that names the header. */
export function parseHeaders(texts: readonly string[]): UserHeader[] {
  return texts.flatMap((text) => text.split(',')).map(parseHeader)
}

function parseHeader(text: string): UserHeader {
  const match = /^([^:]+):([^:]+):(.*)$/.exec(text)
  const [, key = '', kind = '', value = ''] = match ?? []
  if (match === null || !isKind(kind)) {
    throw usageError(`header: found "${text}", expected key:kind:value, kind one of ${Object.keys(FORMS).join(', ')}`)
  }
  if (!FORMS[kind].test(value)) throw usageError(`header ${key}: found "${value}", expected a value of ${kind}`)
  const encoded = headerValueOf(kind, kind === 'raw' ? Buffer.from(value, 'hex') : value)
  // What was cut to the width of its kind is not what was meant.
  if (/int/.test(kind) && String(headerScalarOf(encoded)) !== String(BigInt(value)))
    throw usageError(`header ${key}: ${value} does not fit ${kind}`)
  return { key: stringHeader(key), value: encoded }
}

export function formatHeaders(headers: readonly UserHeader[]): string {
  return headers.map(({ key, value }) => `${formatValue(key)}:${value.kind}:${formatValue(value)}`).join(',')
}

function formatValue(value: HeaderValue): string {
  try {
    const scalar = headerScalarOf(value)
    return scalar instanceof Uint8Array ? Buffer.from(scalar).toString('hex') : String(scalar)
  } catch {
    // Servers do not check lengths: what is no value of its kind is shown as its bytes.
    return Buffer.from(value.bytes).toString('hex')
  }
}

const isKind = (text: string): text is HeaderKind => Object.hasOwn(FORMS, text)
