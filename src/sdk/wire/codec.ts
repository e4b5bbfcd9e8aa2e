/**
 * Small codecs that are put together into those of commands and records.
 *
 * A codec reads a value and writes it back to the same bytes. `struct` takes its fields in the order they are declared,
 * which is the order on the wire, so that a command reads like its line in the protocol's table.
 */
import type { Dialect } from './dialect.ts'
import type { Reader } from './reader.ts'
import type { Writer } from './writer.ts'

export interface Codec<T> {
  read(reader: Reader, dialect: Dialect): T
  write(writer: Writer, value: T, dialect: Dialect): void
}

export type Decoded<C> = C extends Codec<infer T> ? T : never
type Fields = Readonly<Record<string, Codec<unknown>>>
type Struct<F extends Fields> = { readonly [K in keyof F]: Decoded<F[K]> }

export const u8 = unsigned(
  0xff,
  (reader) => reader.u8(),
  (writer, value) => writer.u8(value),
)
export const u16 = unsigned(
  0xffff,
  (reader) => reader.u16(),
  (writer, value) => writer.u16(value),
)
export const u32 = unsigned(
  0xffff_ffff,
  (reader) => reader.u32(),
  (writer, value) => writer.u32(value),
)
export const u64 = bigUnsigned(
  64n,
  (reader) => reader.u64(),
  (writer, value) => writer.u64(value),
)
export const u128 = bigUnsigned(
  128n,
  (reader) => reader.u128(),
  (writer, value) => writer.u128(value),
)
export const f32: Codec<number> = { read: (reader) => reader.f32(), write: (writer, value) => writer.f32(value) }
export const bool: Codec<boolean> = { read: (reader) => reader.bool(), write: (writer, value) => writer.bool(value) }
/** `[len:1][bytes]`, 1..255 bytes of UTF-8. */
export const name: Codec<string> = { read: (reader) => reader.name(), write: (writer, value) => writer.name(value) }
/** `[len:1][bytes]`, 0..255 bytes of UTF-8: secrets, whose length is the broker's business. */
export const secret: Codec<string> = {
  read: (reader) => reader.shortText(),
  write: (writer, value) => writer.shortText(value),
}
/** `[len:4][bytes]` of UTF-8. */
export const text: Codec<string> = { read: (reader) => reader.text(), write: (writer, value) => writer.text(value) }
/** `[len:4][bytes]`, aliasing the payload. */
export const longBytes: Codec<Uint8Array> = {
  read: (reader) => reader.longBytesView(),
  write: (writer, value) => writer.longBytes(value),
}
/** All bytes to the end of the payload, aliasing it. */
export const rest: Codec<Uint8Array> = {
  read: (reader) => reader.restView(),
  write: (writer, value) => writer.bytes(value),
}
/** No bytes at all. Bytes that are there are left unread. */
export const nothing: Codec<null> = { read: () => null, write: () => undefined }

export function struct<F extends Fields>(fields: F): Codec<Struct<F>> {
  const entries = Object.entries(fields)
  return {
    read(reader, dialect) {
      const value: Record<string, unknown> = {}
      for (const [key, codec] of entries) {
        reader.field = key
        value[key] = codec.read(reader, dialect)
      }
      return value as Struct<F>
    },
    write(writer, value, dialect) {
      for (const [key, codec] of entries) {
        writer.field = key
        codec.write(writer, value[key], dialect)
      }
    },
  }
}

/** A DataView would write what is left of a larger number, and 0 for none: of another stream, a count of four billion. */
function unsigned(
  max: number,
  read: (reader: Reader) => number,
  write: (writer: Writer, value: number) => void,
): Codec<number> {
  return {
    read,
    write(writer, value) {
      if (!Number.isInteger(value) || value < 0 || value > max) {
        throw writer.fail('EDGE_FORMAT_INVALID', `a whole number from 0 to ${max}`, `${value}`)
      }
      write(writer, value)
    },
  }
}

function bigUnsigned(
  bits: bigint,
  read: (reader: Reader) => bigint,
  write: (writer: Writer, value: bigint) => void,
): Codec<bigint> {
  const max = (1n << bits) - 1n
  return {
    read,
    write(writer, value) {
      if (value < 0n || value > max) throw writer.fail('EDGE_FORMAT_INVALID', `a number from 0 to ${max}`, `${value}`)
      write(writer, value)
    },
  }
}

/** One type, a layout per dialect. */
export function perDialect<T>(codecs: Readonly<Record<Dialect, Codec<T>>>): Codec<T> {
  return {
    read: (reader, dialect) => codecs[dialect].read(reader, dialect),
    write: (writer, value, dialect) => codecs[dialect].write(writer, value, dialect),
  }
}

/** A field that only one dialect carries; the other reads `absent` and writes nothing. */
export function onlyIn<T>(only: Dialect, codec: Codec<T>, absent: T): Codec<T> {
  return {
    read: (reader, dialect) => (dialect === only ? codec.read(reader, dialect) : absent),
    write: (writer, value, dialect) => {
      if (dialect === only) codec.write(writer, value, dialect)
    },
  }
}

/**
 * A counted list. The count allocates nothing: the list grows as elements are read, each of at least one byte, so it
 * ends with the payload at the latest.
 */
export function list<T>(count: Codec<number>, element: Codec<T>): Codec<readonly T[]> {
  return {
    read(reader, dialect) {
      const wanted = count.read(reader, dialect)
      const values: T[] = []
      while (values.length < wanted) values.push(element.read(reader, dialect))
      return values
    },
    write(writer, values, dialect) {
      count.write(writer, values.length, dialect)
      for (const value of values) element.write(writer, value, dialect)
    },
  }
}

/** A list that ends with the payload. */
export function listToEnd<T>(element: Codec<T>): Codec<readonly T[]> {
  return {
    read(reader, dialect) {
      const values: T[] = []
      while (reader.remaining > 0) values.push(element.read(reader, dialect))
      return values
    },
    write(writer, values, dialect) {
      for (const value of values) element.write(writer, value, dialect)
    },
  }
}

/** An empty payload is null: "not there" of the commands that get one thing. */
export function orEmpty<T>(codec: Codec<T>): Codec<T | null> {
  return {
    read: (reader, dialect) => (reader.remaining === 0 ? null : codec.read(reader, dialect)),
    write: (writer, value, dialect) => {
      if (value !== null) codec.write(writer, value, dialect)
    },
  }
}

/** `[has:1]` and, if it is there, the value. */
export function optional<T>(codec: Codec<T>): Codec<T | null> {
  return {
    read: (reader, dialect) => (reader.bool() ? codec.read(reader, dialect) : null),
    write(writer, value, dialect) {
      writer.bool(value !== null)
      if (value !== null) codec.write(writer, value, dialect)
    },
  }
}

/** `[len:4]` around a codec; bytes within the length that the codec does not take are passed over. */
export function sized<T>(codec: Codec<T>): Codec<T> {
  return {
    read: (reader, dialect) => codec.read(reader.sub(reader.u32()), dialect),
    write(writer, value, dialect) {
      const at = writer.length
      writer.u32(0)
      codec.write(writer, value, dialect)
      writer.patchU32(at, writer.length - at - 4)
    },
  }
}
