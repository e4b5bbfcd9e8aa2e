/** Frames as bytes: CBOR through cbor-x, configured so that it writes and takes the protocol's subset only. */
import { Decoder, Encoder } from 'cbor-x'
import { messageOf } from '../../../errors.ts'
import { frameFault } from './error-codes.ts'
import type { Field } from './fields.ts'
import { FIRST_IGNORABLE_TYPE, FRAMES, type Frame, type FrameType, MAX_TYPE } from './frames.ts'
import { encodeHead, readHead } from './head.ts'
import { MAX_FRAME_BYTES } from './limits.ts'
import { scan } from './scan.ts'

/** No records, plain maps with the shortest heads, plain byte strings, doubles for what is no integer. */
const encoder = new Encoder({
  useRecords: false,
  mapsAsObjects: false,
  variableMapSize: true,
  tagUint8Array: false,
  useFloat32: 0,
})
/** `int64AsNumber` is missing from the library's declarations; `scan` has refused what would not be exact. */
const decoderOptions = { useRecords: false, mapsAsObjects: false, int64AsNumber: true, copyBuffers: true }
const decoder = new Decoder(decoderOptions)

interface Definition {
  readonly type: FrameType
  readonly number: number
  readonly required: readonly (readonly [string, Field<unknown>])[]
  readonly tail: readonly (readonly [string, Field<unknown>])[]
  /** Position of the field that an error names. */
  readonly refAt: number
}

const DEFINITIONS: readonly Definition[] = (Object.keys(FRAMES) as FrameType[]).map((type) => {
  const shape: { number: number; fields: object; tail?: object; ref?: string } = FRAMES[type]
  return {
    type,
    number: shape.number,
    required: Object.entries(shape.fields),
    tail: Object.entries(shape.tail ?? {}),
    refAt: Object.keys(shape.fields).indexOf(shape.ref ?? '') + 1,
  }
})
const BY_NUMBER = new Map(DEFINITIONS.map((one) => [one.number, one]))
const BY_TYPE = new Map(DEFINITIONS.map((one) => [one.type, one]))

/** A frame that this version does not know and may read over. */
export interface IgnorableFrame {
  readonly type: 'ignorable'
  readonly number: number
}

/** @returns the frame as it stands on a stream: head and body. @throws `frame-too-large`. */
export function encodeFrame(frame: Frame): Uint8Array {
  const body = encodeBareFrame(frame)
  const head = encodeHead(body.byteLength)
  const whole = new Uint8Array(head.byteLength + body.byteLength)
  whole.set(head)
  whole.set(body, head.byteLength)
  return whole
}

/** @returns the frame without a head, as it stands in a datagram. */
export function encodeBareFrame(frame: Frame): Uint8Array {
  const definition = BY_TYPE.get(frame.type)
  if (definition === undefined) throw frameFault('frame-unknown', `frame ${frame.type}`)
  const fields: Readonly<Record<string, unknown>> = { ...frame }
  const items: unknown[] = [definition.number]
  for (const [name, field] of definition.required) items.push(field.encode(fields[name]))
  for (const [name, field] of definition.tail) {
    const given = fields[name]
    if (given === undefined) break
    items.push(field.encode(given))
  }
  return encoder.encode(items)
}

/**
 * @param frameView one frame without its head; nothing of the result aliases it.
 * @throws `frame-invalid`, `frame-unknown`; `aboutFrame` names what the error is about.
 */
export function decodeFrame(frameView: Uint8Array): Frame | IgnorableFrame {
  scan(frameView)
  const items: unknown = decoder.decode(frameView)
  if (!Array.isArray(items)) throw frameFault('frame-invalid', 'not an array')
  const number: unknown = items[0]
  if (typeof number !== 'number' || !Number.isSafeInteger(number) || number < 0) {
    throw frameFault('frame-invalid', 'frame type is not an integer')
  }
  const definition = BY_NUMBER.get(number)
  if (definition !== undefined) return typed(definition, items)
  if (number >= FIRST_IGNORABLE_TYPE) return { type: 'ignorable', number }
  throw frameFault('frame-unknown', `frame type ${number}`)
}

/**
 * @returns whether a stream's first frame is of that type, as far as its first bytes tell; false while they are too few.
 * @throws `framing`, `frame-too-large`.
 */
export function beginsWith(type: FrameType, streamView: Uint8Array): boolean {
  const head = readHead(streamView, 0, MAX_FRAME_BYTES)
  if (head === undefined) return false
  const [array = 0, number] = streamView.subarray(head.headBytes)
  return array >> 5 === 4 && number === BY_TYPE.get(type)?.number
}

/** What an `error` frame can say about a frame that was refused; zeros where even that cannot be read. */
export function aboutFrame(frameView: Uint8Array): { of: number; ref: number | null } {
  try {
    scan(frameView)
    const items: unknown = decoder.decode(frameView)
    if (!Array.isArray(items) || !isFrameType(items[0])) return { of: 0, ref: null }
    const refAt = BY_NUMBER.get(items[0])?.refAt ?? 0
    const ref: unknown = refAt > 0 ? items[refAt] : null
    return { of: items[0], ref: Number.isSafeInteger(ref) && Number(ref) >= 0 ? Number(ref) : null }
  } catch {
    // Of the form [type, ..] at least the type stands in the second byte.
    const second = frameView[1] ?? 0
    return { of: (frameView[0] ?? 0) >> 5 === 4 && second < 24 ? second : 0, ref: null }
  }
}

/** What an `error` frame can name. */
const isFrameType = (found: unknown): found is number =>
  typeof found === 'number' && Number.isInteger(found) && found >= 0 && found <= MAX_TYPE

function typed(definition: Definition, items: readonly unknown[]): Frame {
  const fields: Record<string, unknown> = { type: definition.type }
  let at = 1
  for (const [name, field] of definition.required) fields[name] = decodeField(definition, name, field, items[at++])
  for (const [name, field] of definition.tail) {
    if (at >= items.length) break
    fields[name] = decodeField(definition, name, field, items[at++])
  }
  // Built from the definition of that very type: what TypeScript cannot follow through the table.
  return fields as unknown as Frame
}

function decodeField(definition: Definition, name: string, field: Field<unknown>, item: unknown): unknown {
  try {
    return field.decode(item)
  } catch (error) {
    const why = messageOf(error)
    throw frameFault('frame-invalid', `${definition.type}.${name}: ${why}`)
  }
}

/** @returns any item of the protocol's subset of CBOR: maps as `Map`, no tags. For payloads in the stored form. */
export function encodeItem(item: unknown): Uint8Array {
  return encoder.encode(item)
}
