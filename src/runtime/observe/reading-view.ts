/**
 * Shows a payload to a person: as SenML records, CBOR, JSON, text, or bytes in hex, whichever it is. Pure.
 *
 * Bytes come from devices and may be anything: no length in them is believed, depth and size are bounded, and what does
 * not fit is cut and says so.
 */
import { type CborValue, decodeCbor } from './cbor-view.ts'
import { readSenml, type SenmlReading } from './senml-view.ts'

export type ReadingFormat = 'senml+cbor' | 'senml+json' | 'cbor' | 'json' | 'text' | 'hex'

export interface ReadingView {
  readonly format: ReadingFormat
  /** One line or a few, cut at `MAX_SHOWN`. */
  readonly text: string
  readonly isCut: boolean
  /** Only for SenML, at most `MAX_READINGS`. */
  readonly readings?: readonly SenmlReading[]
}

export const MAX_SHOWN = 600
const MAX_READINGS = 16
/** Above, a payload is shown as its first bytes: decoding it would cost more than a glance is worth. */
const MAX_DECODED_BYTES = 64 * 1024
const MAX_HEX_BYTES = 128

const utf8 = new TextDecoder('utf-8', { fatal: true })
/** Control characters, and those of them that text may have: tab, line feed and carriage return. */
const CONTROL = /\p{Cc}/gu
const TEXT_CONTROL = ['\t', '\n', '\r']

export function viewReading(payloadView: Uint8Array): ReadingView {
  if (payloadView.length <= MAX_DECODED_BYTES) {
    const text = readText(payloadView)
    if (text !== undefined) return viewText(text)
    const value = decodeCbor(payloadView)
    if (value !== undefined) return viewValue(value, 'cbor', JSON.stringify(value))
  }
  const hex = Buffer.from(payloadView.subarray(0, MAX_HEX_BYTES)).toString('hex')
  return { format: 'hex', text: hex.replace(/(..)(?=.)/g, '$1 '), isCut: payloadView.length > MAX_HEX_BYTES }
}

function readText(bytes: Uint8Array): string | undefined {
  try {
    const text = utf8.decode(bytes)
    return (text.match(CONTROL) ?? []).every((each) => TEXT_CONTROL.includes(each)) ? text : undefined
  } catch {
    return undefined
  }
}

function viewText(text: string): ReadingView {
  const first = text.trimStart()[0]
  if (first === '{' || first === '[') {
    try {
      return viewValue(JSON.parse(text), 'json', text)
    } catch {
      // Looks like JSON and is none: shown as the text it is.
    }
  }
  return cut({ format: 'text', text })
}

function viewValue(value: CborValue, format: 'cbor' | 'json', text: string): ReadingView {
  const readings = readSenml(value, MAX_READINGS)
  if (readings === undefined) return cut({ format, text })
  return { ...cut({ format: `senml+${format}`, text }), readings }
}

function cut(view: Omit<ReadingView, 'isCut'>): ReadingView {
  if (view.text.length <= MAX_SHOWN) return { ...view, isCut: false }
  // Not between the halves of a character outside the basic plane.
  const shown = view.text.slice(0, MAX_SHOWN).replace(/[\ud800-\udbff]$/, '')
  return { ...view, text: shown, isCut: true }
}
