/**
 * XXH3-64 (seed 0) in plain JavaScript, exact for every length: the reference of the WebAssembly kernel, and what stands
 * in for it.
 *
 * Every u64 is a pair of u32 held in doubles, so that nothing is allocated; only inputs up to 16 bytes, which no message
 * hash has, are done with BigInt. The one trick is the exact 32x32 -> 64 product: the low half comes from `Math.imul`, and
 * because it is known, the rounding error of the double product (below 2^11) cannot move the high half, so that
 * `round((a * b - low) / 2^32)` is exact.
 */
export const XXH3_SECRET_HEX =
  'b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f' +
  'cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c' +
  '3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8' +
  'a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364' +
  'eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e' +
  '2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e'

export const XXH3_SECRET_BYTES = 192

/** The secret as bytes. */
export function xxh3Secret(): Uint8Array {
  return Uint8Array.from({ length: XXH3_SECRET_BYTES }, (_, i) =>
    Number.parseInt(XXH3_SECRET_HEX.slice(2 * i, 2 * i + 2), 16),
  )
}

/** The secret as the u32 that begins at each byte, for most steps read it unaligned; doubles, so that no `>>> 0` is needed. */
const SECRET = new Float64Array(XXH3_SECRET_BYTES - 3)
{
  const view = new DataView(xxh3Secret().buffer)
  for (let i = 0; i < SECRET.length; i++) SECRET[i] = view.getUint32(i, true)
}

const PER_U32 = 2 ** -32
const STRIPE_BYTES = 64
const BLOCK_BYTES = 1024
const STRIPES_PER_BLOCK = 16
/** Where in the secret the last stripe, the scramble and the final merge begin. */
const LAST_STRIPE_SECRET = 121
const SCRAMBLE_SECRET = 128
const MERGE_SECRET = 11

/** First values of the eight lanes, low and high half each: the primes of XXH32 and XXH64. */
const FIRST_LANES = [
  0xc2b2ae3d, 0, 0x85ebca87, 0x9e3779b1, 0x27d4eb4f, 0xc2b2ae3d, 0x9e3779f9, 0x165667b1, 0xc2b2ae63, 0x85ebca77,
  0x85ebca77, 0, 0x165667c5, 0x27d4eb2f, 0x9e3779b1, 0,
]
const lanes = new Float64Array(16)

/** The running hash and, after `xxh3`, its result. An object or a BigInt per message would be garbage. */
let low = 0
let high = 0

/** Lower 32 bits of the last `xxh3`. */
export const xxh3Low = (): number => low
/** Upper 32 bits of the last `xxh3`. */
export const xxh3High = (): number => high

/** Hashes `length` bytes of `view` from `start`; read the result with `xxh3Low` and `xxh3High` before the next call. */
export function xxh3(view: DataView, start: number, length: number): void {
  if (length <= 16) {
    hashUpTo16(view, start, length)
    return
  }
  multiply(length, 0, 0x85ebca87, 0x9e3779b1)
  if (length > 240) hashLong(view, start, length)
  else if (length > 128) hashUpTo240(view, start, length)
  else hashUpTo128(view, start, length)
}

function hashUpTo128(view: DataView, start: number, length: number): void {
  const end = start + length
  if (length > 96) {
    mix(view, start + 48, 96)
    mix(view, end - 64, 112)
  }
  if (length > 64) {
    mix(view, start + 32, 64)
    mix(view, end - 48, 80)
  }
  if (length > 32) {
    mix(view, start + 16, 32)
    mix(view, end - 32, 48)
  }
  mix(view, start, 0)
  mix(view, end - 16, 16)
  avalanche()
}

function hashUpTo240(view: DataView, start: number, length: number): void {
  for (let i = 0; i < 8; i++) mix(view, start + i * 16, i * 16)
  avalanche()
  const rounds = length >> 4
  for (let i = 8; i < rounds; i++) mix(view, start + i * 16, (i - 8) * 16 + 3)
  mix(view, start + length - 16, 119)
  avalanche()
}

/** Stripes of 64 bytes into eight lanes, scrambled after every 16; the last stripe overlaps the one before. */
function hashLong(view: DataView, start: number, length: number): void {
  const seedLow = low
  const seedHigh = high
  lanes.set(FIRST_LANES)
  const blocks = Math.floor((length - 1) / BLOCK_BYTES)
  const lastStripes = Math.floor((length - 1 - blocks * BLOCK_BYTES) / STRIPE_BYTES)
  let at = start
  for (let block = 0; block <= blocks; block++) {
    const stripes = block < blocks ? STRIPES_PER_BLOCK : lastStripes
    for (let i = 0; i < stripes; i++) {
      addStripe(view, at, i * 8)
      at += STRIPE_BYTES
    }
    if (block < blocks) scramble()
  }
  addStripe(view, start + length - STRIPE_BYTES, LAST_STRIPE_SECRET)
  low = seedLow
  high = seedHigh
  for (let pair = 0; pair < 4; pair++) {
    const lane = pair * 4
    const secret = MERGE_SECRET + pair * 16
    fold(
      (laneAt(lane) ^ secretAt(secret)) >>> 0,
      (laneAt(lane + 1) ^ secretAt(secret + 4)) >>> 0,
      (laneAt(lane + 2) ^ secretAt(secret + 8)) >>> 0,
      (laneAt(lane + 3) ^ secretAt(secret + 12)) >>> 0,
    )
  }
  avalanche()
}

function laneAt(index: number): number {
  return lanes[index] ?? 0
}

function secretAt(index: number): number {
  return SECRET[index] ?? 0
}

function addStripe(view: DataView, at: number, secret: number): void {
  for (let i = 0; i < 16; i += 2) {
    const p = at + i * 4
    const dataLow = view.getUint32(p, true)
    const dataHigh = view.getUint32(p + 4, true)
    addToLane(i ^ 2, dataLow, dataHigh) // The plain data goes to the neighbouring lane.
    const keyLow = (dataLow ^ secretAt(secret + i * 4)) >>> 0
    const keyHigh = (dataHigh ^ secretAt(secret + i * 4 + 4)) >>> 0
    const productLow = Math.imul(keyLow, keyHigh) >>> 0
    addToLane(i, productLow, ((keyLow * keyHigh - productLow) * PER_U32 + 0.5) >>> 0)
  }
}

function addToLane(lane: number, addLow: number, addHigh: number): void {
  const sum = laneAt(lane) + addLow
  const word = sum >>> 0
  lanes[lane] = word
  lanes[lane + 1] = (laneAt(lane + 1) + addHigh + (sum - word) * PER_U32) >>> 0
}

function scramble(): void {
  for (let i = 0; i < 16; i += 2) {
    const laneLow = laneAt(i)
    const laneHigh = laneAt(i + 1)
    const l = (laneLow ^ (laneHigh >>> 15) ^ secretAt(SCRAMBLE_SECRET + i * 4)) >>> 0 // lane ^ lane >> 47 ^ secret
    const h = (laneHigh ^ secretAt(SCRAMBLE_SECRET + i * 4 + 4)) >>> 0
    multiply(l, h, 0x9e3779b1, 0)
    lanes[i] = low
    lanes[i + 1] = high
  }
}

/** Adds the folded product of 16 bytes of data, each half made secret. */
function mix(view: DataView, at: number, secret: number): void {
  fold(
    (view.getUint32(at, true) ^ secretAt(secret)) >>> 0,
    (view.getUint32(at + 4, true) ^ secretAt(secret + 4)) >>> 0,
    (view.getUint32(at + 8, true) ^ secretAt(secret + 8)) >>> 0,
    (view.getUint32(at + 12, true) ^ secretAt(secret + 12)) >>> 0,
  )
}

/** hash += low half ^ high half of the 128-bit product x * y. */
function fold(xLow: number, xHigh: number, yLow: number, yHigh: number): void {
  const a0 = Math.imul(xLow, yLow) >>> 0
  const a1 = ((xLow * yLow - a0) * PER_U32 + 0.5) >>> 0
  const b0 = Math.imul(xHigh, yLow) >>> 0
  const b1 = ((xHigh * yLow - b0) * PER_U32 + 0.5) >>> 0
  const c0 = Math.imul(xLow, yHigh) >>> 0
  const c1 = ((xLow * yHigh - c0) * PER_U32 + 0.5) >>> 0
  const d0 = Math.imul(xHigh, yHigh) >>> 0
  const d1 = ((xHigh * yHigh - d0) * PER_U32 + 0.5) >>> 0
  const cross = a1 + b0 + c0
  const crossLow = cross >>> 0
  const upper = b1 + (c1 + (cross - crossLow) * PER_U32) + d0
  const upperLow = upper >>> 0
  const sum = low + ((a0 ^ upperLow) >>> 0)
  low = sum >>> 0
  const carry = sum > 0xffff_ffff ? 1 : 0
  high = (high + ((crossLow ^ (d1 + (upper - upperLow) * PER_U32)) >>> 0) + carry) >>> 0
}

/** hash = x * y modulo 2^64. */
function multiply(xLow: number, xHigh: number, yLow: number, yHigh: number): void {
  low = Math.imul(xLow, yLow) >>> 0
  // Truncated before the sum: the other terms may be negative, and then `>>> 0` would round the wrong way.
  const carry = ((xLow * yLow - low) * PER_U32 + 0.5) >>> 0
  high = (carry + Math.imul(xHigh, yLow) + Math.imul(xLow, yHigh)) >>> 0
}

function avalanche(): void {
  const l = (low ^ (high >>> 5)) >>> 0 // hash ^ hash >> 37
  multiply(l, high, 0x9e3779f9, 0x16566791)
  low = (low ^ high) >>> 0 // hash ^ hash >> 32
}

// ---- up to 16 bytes: empty bodies of requests and other short ones, never messages ------------------------------------

const PRIME_2 = 0xc2b2ae3d27d4eb4fn
const PRIME_3 = 0x165667b19e3779f9n
const MIX_1 = 0x165667919e3779f9n
const MIX_2 = 0x9fb21c651e98df25n

const u64 = (value: bigint): bigint => BigInt.asUintN(64, value)
const rotated = (value: bigint, bits: bigint): bigint => u64(value << bits) | (value >> (64n - bits))
const secret64 = (index: number): bigint => (BigInt(secretAt(index + 4)) << 32n) | BigInt(secretAt(index))

function hashUpTo16(view: DataView, start: number, length: number): void {
  const hash =
    length > 8
      ? hash9To16(view, start, length)
      : length >= 4
        ? hash4To8(view, start, length)
        : hash0To3(view, start, length)
  low = Number(hash & 0xffff_ffffn)
  high = Number(hash >> 32n)
}

function hash9To16(view: DataView, start: number, length: number): bigint {
  const first = view.getBigUint64(start, true) ^ secret64(24) ^ secret64(32)
  const last = view.getBigUint64(start + length - 8, true) ^ secret64(40) ^ secret64(48)
  const product = first * last
  const hash = u64(BigInt(length) + swapped(first) + last + (u64(product) ^ (product >> 64n)))
  const mixed = u64((hash ^ (hash >> 37n)) * MIX_1)
  return mixed ^ (mixed >> 32n)
}

function swapped(value: bigint): bigint {
  let result = 0n
  for (let i = 0n; i < 64n; i += 8n) result = (result << 8n) | ((value >> i) & 255n)
  return result
}

function hash4To8(view: DataView, start: number, length: number): bigint {
  const first = BigInt(view.getUint32(start, true))
  const last = BigInt(view.getUint32(start + length - 4, true))
  let hash = u64(last + (first << 32n)) ^ secret64(8) ^ secret64(16)
  hash ^= rotated(hash, 49n) ^ rotated(hash, 24n)
  hash = u64(hash * MIX_2)
  hash ^= (hash >> 35n) + BigInt(length)
  hash = u64(hash * MIX_2)
  return hash ^ (hash >> 28n)
}

function hash0To3(view: DataView, start: number, length: number): bigint {
  if (length === 0) return avalanche64(secret64(56) ^ secret64(64))
  const first = view.getUint8(start)
  const middle = view.getUint8(start + (length >> 1))
  const last = view.getUint8(start + length - 1)
  const joined = (first << 16) | (middle << 24) | last | (length << 8)
  return avalanche64(BigInt((joined ^ secretAt(0) ^ secretAt(4)) >>> 0))
}

function avalanche64(value: bigint): bigint {
  let hash = u64((value ^ (value >> 33n)) * PRIME_2)
  hash = u64((hash ^ (hash >> 29n)) * PRIME_3)
  return hash ^ (hash >> 32n)
}
