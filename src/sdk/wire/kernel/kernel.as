/**
 * Message kernels in AssemblyScript: TypeScript's syntax, compiled ahead to WebAssembly by `scripts/build-kernel.ts`, never
 * run by Node as it stands. `js-kernel.ts` and `xxh3.ts` are their twins: same bytes, same return codes.
 *
 * The memory is imported and never grows; nothing is allocated and no state is kept but the cells below. All pointers are
 * offsets into that memory. Every read of input and every write of output is bounded by an end given by the caller, so
 * that damaged input can at worst give a negative return code, never a write into another buffer.
 *
 *   64..256   secret of XXH3, put there by the loader
 *   256..260  index of the message that a negative return code is about
 *   264, 272  smallest and largest origin time, results of `scan`
 */
const SECRET: usize = 64
const FAULT_CELL: usize = 256
const LEAST_CELL: usize = 264
const MOST_CELL: usize = 272

// Return codes; the numbers are those of `faults.ts`.
const SHORT: i32 = -1
const TRAILING: i32 = -2
const PAYLOAD_TOO_LARGE: i32 = -3
const HEADERS_TOO_LARGE: i32 = -4
const CHECKSUM: i32 = -5
const RESERVED: i32 = -6
const DELTA: i32 = -7
const BATCH_CHECKSUM: i32 = -8
const RECORD: i32 = -9
const NO_ROOM: i32 = -10

// Flags.
const VERIFY: u32 = 1
const KEEP_IDS: u32 = 2
const WITH_CHECKSUM: u32 = 4
const STAMP: u32 = 8
const DERIVE_IDS: u32 = 16

const MAX_PAYLOAD: u32 = 64000000
const MAX_HEADERS: u32 = 100000
const CLASSIC_HEADER: usize = 64
const FRAME_HEADER: usize = 48
const BATCH_HEADER: usize = 256
/** Bytes of the batch header that its checksum covers before and after the checksum field. */
const HASHED_HEAD: usize = 40
const HASHED_PREFIX: usize = 44

// ---- XXH3-64, seed 0 --------------------------------------------------------------------------------------------------

const P32_1: u64 = 0x9e3779b1
const P32_2: u64 = 0x85ebca77
const P32_3: u64 = 0xc2b2ae3d
const P64_1: u64 = 0x9e3779b185ebca87
const P64_2: u64 = 0xc2b2ae3d27d4eb4f
const P64_3: u64 = 0x165667b19e3779f9
const P64_4: u64 = 0x85ebca77c2b2ae63
const P64_5: u64 = 0x27d4eb2f165667c5
const MIX_1: u64 = 0x165667919e3779f9
const MIX_2: u64 = 0x9fb21c651e98df25

/** The two halves of the 128-bit product, folded into one by xor. */
@inline
function foldedProduct(a: u64, b: u64): u64 {
  const aLow = a & 0xffffffff
  const aHigh = a >> 32
  const bLow = b & 0xffffffff
  const bHigh = b >> 32
  const lowLow = aLow * bLow
  const highLow = aHigh * bLow
  const cross = (lowLow >> 32) + (highLow & 0xffffffff) + aLow * bHigh
  const upper = (highLow >> 32) + (cross >> 32) + aHigh * bHigh
  return upper ^ ((cross << 32) | (lowLow & 0xffffffff))
}

@inline
function mix16(p: usize, secret: usize): u64 {
  const s = SECRET + secret
  return foldedProduct(load<u64>(p) ^ load<u64>(s), load<u64>(p, 8) ^ load<u64>(s, 8))
}

@inline
function avalanche(hash: u64): u64 {
  const h = (hash ^ (hash >> 37)) * MIX_1
  return h ^ (h >> 32)
}

@inline
function avalanche64(hash: u64): u64 {
  let h = (hash ^ (hash >> 33)) * P64_2
  h = (h ^ (h >> 29)) * P64_3
  return h ^ (h >> 32)
}

function hashUpTo16(p: usize, length: usize): u64 {
  if (length > 8) {
    const low = load<u64>(p) ^ load<u64>(SECRET, 24) ^ load<u64>(SECRET, 32)
    const high = load<u64>(p + length - 8) ^ load<u64>(SECRET, 40) ^ load<u64>(SECRET, 48)
    return avalanche((length as u64) + bswap<u64>(low) + high + foldedProduct(low, high))
  }
  if (length >= 4) {
    const first = load<u32>(p) as u64
    const last = load<u32>(p + length - 4) as u64
    let h = (last + (first << 32)) ^ load<u64>(SECRET, 8) ^ load<u64>(SECRET, 16)
    h ^= rotl<u64>(h, 49) ^ rotl<u64>(h, 24)
    h *= MIX_2
    h ^= (h >> 35) + (length as u64)
    h *= MIX_2
    return h ^ (h >> 28)
  }
  if (length > 0) {
    const first = load<u8>(p) as u32
    const middle = load<u8>(p + (length >> 1)) as u32
    const last = load<u8>(p + length - 1) as u32
    const joined = (first << 16) | (middle << 24) | last | ((length as u32) << 8)
    return avalanche64((joined ^ load<u32>(SECRET) ^ load<u32>(SECRET, 4)) as u64)
  }
  return avalanche64(load<u64>(SECRET, 56) ^ load<u64>(SECRET, 64))
}

function hashUpTo240(p: usize, length: usize): u64 {
  const end = p + length
  let sum: u64 = (length as u64) * P64_1
  if (length <= 128) {
    if (length > 32) {
      if (length > 64) {
        if (length > 96) sum += mix16(p + 48, 96) + mix16(end - 64, 112)
        sum += mix16(p + 32, 64) + mix16(end - 48, 80)
      }
      sum += mix16(p + 16, 32) + mix16(end - 32, 48)
    }
    return avalanche(sum + mix16(p, 0) + mix16(end - 16, 16))
  }
  for (let i: usize = 0; i < 8; i++) sum += mix16(p + i * 16, i * 16)
  sum = avalanche(sum)
  const rounds = length / 16
  for (let i: usize = 8; i < rounds; i++) sum += mix16(p + i * 16, (i - 8) * 16 + 3)
  return avalanche(sum + mix16(end - 16, 119))
}

/** Of each lane the lower half times the upper half. */
@inline
function product32(lanes: v128): v128 {
  return i64x2.extmul_low_i32x4_u(v128.shuffle<u32>(lanes, lanes, 0, 2, 0, 2), v128.shuffle<u32>(lanes, lanes, 1, 3, 1, 3))
}

/** 16 bytes into two lanes of the sum. */
@inline
function accumulated(sum: v128, data: v128, secret: usize): v128 {
  const swapped = v128.shuffle<u64>(data, data, 1, 0)
  return i64x2.add(i64x2.add(sum, swapped), product32(v128.xor(data, v128.load(secret))))
}

@inline
function scrambled(sum: v128, secret: usize): v128 {
  const mixed = v128.xor(v128.xor(sum, i64x2.shr_u(sum, 47)), v128.load(SECRET + 128 + secret))
  return i64x2.mul(mixed, i64x2.splat(P32_1))
}

@inline
function foldedLanes(sum: v128, secret: usize): u64 {
  const s = SECRET + 11 + secret
  return foldedProduct(i64x2.extract_lane(sum, 0) ^ load<u64>(s), i64x2.extract_lane(sum, 1) ^ load<u64>(s, 8))
}

/** Stripes of 64 bytes into eight lanes, scrambled after every 16; the last stripe overlaps the one before. */
function hashLong(p: usize, length: usize): u64 {
  let a0 = i64x2(P32_3, P64_1)
  let a1 = i64x2(P64_2, P64_3)
  let a2 = i64x2(P64_4, P32_2)
  let a3 = i64x2(P64_5, P32_1)
  const blocks = (length - 1) / 1024
  const end = p + length
  for (let block: usize = 0; block <= blocks; block++) {
    const isLast = block == blocks
    const stripes: usize = isLast ? (length - 1 - blocks * 1024) / 64 : 16
    const turns: usize = isLast ? stripes + 1 : stripes
    for (let i: usize = 0; i < turns; i++) {
      const isTail = i == stripes
      const q: usize = isTail ? end - 64 : p
      const s: usize = SECRET + (isTail ? <usize>121 : i * 8)
      a0 = accumulated(a0, v128.load(q), s)
      a1 = accumulated(a1, v128.load(q, 16), s + 16)
      a2 = accumulated(a2, v128.load(q, 32), s + 32)
      a3 = accumulated(a3, v128.load(q, 48), s + 48)
      p += 64
    }
    if (!isLast) {
      a0 = scrambled(a0, 0)
      a1 = scrambled(a1, 16)
      a2 = scrambled(a2, 32)
      a3 = scrambled(a3, 48)
    }
  }
  const hash = (length as u64) * P64_1
  return avalanche(hash + foldedLanes(a0, 0) + foldedLanes(a1, 16) + foldedLanes(a2, 32) + foldedLanes(a3, 48))
}

export function xxh3(p: usize, length: usize): u64 {
  if (length > 240) return hashLong(p, length)
  return length > 16 ? hashUpTo240(p, length) : hashUpTo16(p, length)
}

// ---- records ----------------------------------------------------------------------------------------------------------

@inline
function failAt(index: u32, code: i32): i32 {
  store<u32>(FAULT_CELL, index)
  return code
}

@inline
function putVarint(d: usize, value: u64): usize {
  while (value >= 128) {
    store<u8>(d++, (value as u8) | 128)
    value >>= 7
  }
  store<u8>(d++, value as u8)
  return d
}

/** As `memory.copy` between regions that do not overlap, whose call costs more than it copies for a message of usual size. */
@inline
function copyBytes(d: usize, s: usize, size: usize): void {
  if (size < 16 || size > 1024) {
    memory.copy(d, s, size)
    return
  }
  const last = size - 16
  for (let at: usize = 0; at < last; at += 16) v128.store(d + at, v128.load(s + at))
  v128.store(d + last, v128.load(s + last))
}

/** Writes one record; room is the caller's business: a record is never longer than the message it is made of. */
@inline
function putRecord(d: usize, idLow: u64, idHigh: u64, delta: i64, headers: u32, payload: u32, body: usize, flags: u32): usize {
  const hasId: u64 = (idLow | idHigh) != 0 || (flags & KEEP_IDS) != 0 ? 1 : 0
  d = putVarint(d, ((payload as u64) << 2) | (headers != 0 ? 2 : 0) | hasId)
  d = putVarint(d, ((delta << 1) ^ (delta >> 63)) as u64)
  if (hasId != 0) {
    store<u64>(d, idLow)
    store<u64>(d, idHigh, 8)
    d += 16
  }
  if (headers != 0) d = putVarint(d, headers as u64)
  const size = (headers as usize) + (payload as usize)
  copyBytes(d, body, size)
  return d + size
}

/** Classic messages of exactly `length` bytes at p to records at d. @returns bytes written or a fault. */
export function packClassic(p: usize, length: usize, count: u32, d: usize, flags: u32): i32 {
  const end = p + length
  const start = d
  let previous: u64 = 0
  for (let i: u32 = 0; i < count; i++) {
    if (end - p < CLASSIC_HEADER) return failAt(i, SHORT)
    const headers = load<u32>(p, 48)
    const payload = load<u32>(p, 52)
    if ((headers as u64) + (payload as u64) > ((end - p - CLASSIC_HEADER) as u64)) return failAt(i, SHORT)
    if (payload > MAX_PAYLOAD) return failAt(i, PAYLOAD_TOO_LARGE)
    if (headers > MAX_HEADERS) return failAt(i, HEADERS_TOO_LARGE)
    const size = CLASSIC_HEADER + (headers as usize) + (payload as usize)
    if ((flags & VERIFY) != 0) {
      const sum = load<u64>(p)
      if (sum != 0 && sum != xxh3(p + 8, size - 8)) return failAt(i, CHECKSUM)
    }
    const origin = load<u64>(p, 40)
    const delta: i64 = i == 0 ? 0 : ((origin - previous) as i64)
    previous = origin
    d = putRecord(d, load<u64>(p, 8), load<u64>(p, 16), delta, headers, payload, p + CLASSIC_HEADER, flags)
    p += size
  }
  return p == end ? ((d - start) as i32) : failAt(count, TRAILING)
}

/**
 * The frames of a VSR batch whose header has been checked, `length` bytes with the header, to records at d. Every checksum
 * is verified; `sums` takes 44 + 8 * count bytes. @returns bytes written or a fault.
 */
export function packFrames(p: usize, length: usize, count: u32, firstDelta: u32, d: usize, sums: usize, flags: u32): i32 {
  const end = p + length
  const start = d
  const batch = p
  memory.copy(sums, batch, HASHED_HEAD)
  store<u32>(sums, count, HASHED_HEAD)
  p += BATCH_HEADER
  let previous: u32 = 0
  for (let i: u32 = 0; i < count; i++) {
    if (end - p < FRAME_HEADER) return failAt(i, SHORT)
    const headers = load<u32>(p, 32)
    const payload = load<u32>(p, 36)
    if ((headers as u64) + (payload as u64) > ((end - p - FRAME_HEADER) as u64)) return failAt(i, SHORT)
    if (payload > MAX_PAYLOAD) return failAt(i, PAYLOAD_TOO_LARGE)
    if (headers > MAX_HEADERS) return failAt(i, HEADERS_TOO_LARGE)
    if (load<u64>(p, 40) != 0) return failAt(i, RESERVED)
    if (load<u32>(p, 24) != firstDelta + i) return failAt(i, DELTA)
    const size = FRAME_HEADER + (headers as usize) + (payload as usize)
    const sum = load<u64>(p)
    if (sum != xxh3(p + 8, size - 8)) return failAt(i, CHECKSUM)
    store<u64>(sums + HASHED_PREFIX + (i as usize) * 8, sum)
    const origin = load<u32>(p, 28)
    const delta: i64 = i == 0 ? 0 : (origin as i64) - (previous as i64)
    previous = origin
    d = putRecord(d, load<u64>(p, 8), load<u64>(p, 16), delta, headers, payload, p + FRAME_HEADER, flags)
    p += size
  }
  if (p != end) return failAt(count, TRAILING)
  if (xxh3(sums, HASHED_PREFIX + (count as usize) * 8) != load<u64>(batch, 40)) return failAt(count, BATCH_CHECKSUM)
  return (d - start) as i32
}

// The record that `takeRecord` read last. Plain globals: a struct would have to live in memory.
let recordDelta: u64 = 0
let recordId: usize = 0
let recordHeaders: u32 = 0
let recordPayload: u32 = 0
let recordBody: usize = 0
let cursor: usize = 0

/** Reads a varint of at most 64 bits at `cursor`; moves `cursor` past `end` when it does not fit. */
@inline
function takeVarint(end: usize): u64 {
  let value: u64 = 0
  let shift: u64 = 0
  while (cursor < end && shift < 70) {
    const byte = load<u8>(cursor++) as u64
    if (shift == 63 && byte > 1) break
    value |= (byte & 127) << shift
    if (byte < 128) return value
    shift += 7
  }
  cursor = end + 1
  return 0
}

/** Reads the record at `cursor`. @returns false when it does not lie within `end`. */
@inline
function takeRecord(end: usize): bool {
  const head = takeVarint(end)
  if (cursor > end) return false
  const zigzag = takeVarint(end)
  if (cursor > end) return false
  recordDelta = (zigzag >> 1) ^ (-(zigzag & 1))
  recordId = 0
  if ((head & 1) != 0) {
    if (end - cursor < 16) return false
    recordId = cursor
    cursor += 16
  }
  let headers: u64 = 0
  if ((head & 2) != 0) {
    headers = takeVarint(end)
    if (cursor > end || headers > (MAX_HEADERS as u64)) return false
  }
  const payload = head >> 2
  if (payload > (MAX_PAYLOAD as u64) || headers + payload > ((end - cursor) as u64)) return false
  recordHeaders = headers as u32
  recordPayload = payload as u32
  recordBody = cursor
  cursor += (headers as usize) + (payload as usize)
  return true
}

/** Checks that `count` records fill p..end and finds their smallest and largest origin time. @returns 0 or a fault. */
export function scan(p: usize, end: usize, count: u32, baseOrigin: u64): i32 {
  cursor = p
  let origin = baseOrigin
  let least: u64 = u64.MAX_VALUE
  let most: u64 = 0
  for (let i: u32 = 0; i < count; i++) {
    if (!takeRecord(end)) return failAt(i, RECORD)
    origin += recordDelta
    if (origin < least) least = origin
    if (origin > most) most = origin
  }
  if (cursor != end) return failAt(count, RECORD)
  store<u64>(LEAST_CELL, least)
  store<u64>(MOST_CELL, most)
  return 0
}

/** @returns bytes of payload and user headers of records skip .. skip + take of p..end, or a fault. */
export function measure(p: usize, end: usize, skip: u32, take: u32): i32 {
  cursor = p
  let size: u32 = 0
  const all = skip + take
  for (let i: u32 = 0; i < all; i++) {
    if (!takeRecord(end)) return failAt(i, RECORD)
    if (i >= skip) size += recordHeaders + recordPayload
  }
  return size as i32
}

/** Records skip .. skip + take of p..end to classic messages at d..dEnd. @returns bytes written or a fault. */
export function unpackClassic(
  p: usize,
  end: usize,
  skip: u32,
  take: u32,
  d: usize,
  dEnd: usize,
  baseOffset: u64,
  timeUs: u64,
  baseOrigin: u64,
  idSeed: u64,
  flags: u32,
): i32 {
  cursor = p
  const start = d
  const all = skip + take
  let origin = baseOrigin
  for (let i: u32 = 0; i < all; i++) {
    if (!takeRecord(end)) return failAt(i, RECORD)
    origin += recordDelta
    if (i < skip) continue
    const body = (recordHeaders as usize) + (recordPayload as usize)
    if (dEnd - d < CLASSIC_HEADER + body) return failAt(i, NO_ROOM)
    const offset = baseOffset + (i as u64)
    const isStamped = (flags & STAMP) != 0
    if (recordId != 0) {
      store<u64>(d, load<u64>(recordId), 8)
      store<u64>(d, load<u64>(recordId, 8), 16)
    } else {
      const isDerived = (flags & DERIVE_IDS) != 0
      store<u64>(d, isDerived ? offset : 0, 8)
      store<u64>(d, isDerived ? idSeed : 0, 16)
    }
    store<u64>(d, isStamped ? offset : 0, 24)
    store<u64>(d, isStamped ? timeUs : 0, 32)
    store<u64>(d, origin, 40)
    store<u32>(d, recordHeaders, 48)
    store<u32>(d, recordPayload, 52)
    store<u64>(d, 0, 56)
    copyBytes(d + CLASSIC_HEADER, recordBody, body)
    store<u64>(d, (flags & WITH_CHECKSUM) != 0 ? xxh3(d + 8, CLASSIC_HEADER - 8 + body) : 0)
    d += CLASSIC_HEADER + body
  }
  return (d - start) as i32
}

/**
 * Records skip .. skip + take of p..end to one VSR batch at d..dEnd, header and checksums included; `sums` takes
 * 44 + 8 * take bytes. `baseOffset` derives ids, `stampedOffset` is what the header says (0 in sends). No origin may lie
 * before `batchOrigin` or 2^32 µs after it. @returns bytes written or a fault.
 */
export function unpackFrames(
  p: usize,
  end: usize,
  skip: u32,
  take: u32,
  d: usize,
  dEnd: usize,
  sums: usize,
  partitionId: u64,
  baseOffset: u64,
  stampedOffset: u64,
  timeUs: u64,
  baseOrigin: u64,
  batchOrigin: u64,
  idSeed: u64,
  flags: u32,
): i32 {
  cursor = p
  const batch = d
  if (dEnd - d < BATCH_HEADER) return failAt(skip, NO_ROOM)
  d += BATCH_HEADER
  let origin = baseOrigin
  let sum = sums + HASHED_PREFIX
  const all = skip + take
  for (let i: u32 = 0; i < all; i++) {
    if (!takeRecord(end)) return failAt(i, RECORD)
    origin += recordDelta
    if (i < skip) continue
    const body = (recordHeaders as usize) + (recordPayload as usize)
    if (dEnd - d < FRAME_HEADER + body) return failAt(i, NO_ROOM)
    const delta = origin - batchOrigin
    if (delta > 0xffffffff) return failAt(i, DELTA)
    if (recordId != 0) {
      store<u64>(d, load<u64>(recordId), 8)
      store<u64>(d, load<u64>(recordId, 8), 16)
    } else {
      const isDerived = (flags & DERIVE_IDS) != 0
      store<u64>(d, isDerived ? baseOffset + (i as u64) : 0, 8)
      store<u64>(d, isDerived ? idSeed : 0, 16)
    }
    store<u32>(d, i, 24)
    store<u32>(d, delta as u32, 28)
    store<u32>(d, recordHeaders, 32)
    store<u32>(d, recordPayload, 36)
    store<u64>(d, 0, 40)
    copyBytes(d + FRAME_HEADER, recordBody, body)
    const hash = xxh3(d + 8, FRAME_HEADER - 8 + body)
    store<u64>(d, hash)
    store<u64>(sum, hash)
    sum += 8
    d += FRAME_HEADER + body
  }
  store<u64>(batch, partitionId)
  store<u64>(batch, stampedOffset, 8)
  store<u64>(batch, timeUs, 16)
  store<u64>(batch, batchOrigin, 24)
  store<u64>(batch, (d - batch) as u64, 32)
  store<u32>(batch, take, 48)
  memory.fill(batch + 52, 0, 204)
  memory.copy(sums, batch, HASHED_HEAD)
  store<u32>(sums, take, HASHED_HEAD)
  store<u64>(batch, xxh3(sums, HASHED_PREFIX + (take as usize) * 8), 40)
  return (d - batch) as i32
}
