/**
 * A client that lies with the right keys: the plain text of its packets is changed before it is sealed, so that what is
 * malformed reaches the parsers of frames and of TLS behind the packet protection.
 */
import { PacketKeys } from '../../../src/quic-edge/engine/crypto/packet-keys.ts'
import type { SeededRandom } from '../seeded-random.ts'

/** Bytes at the edges of what encodings mean. */
const EDGES = [0, 1, 2, 3, 6, 8, 0x0f, 0x10, 0x18, 0x1a, 0x1c, 0x1e, 0x30, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xff]

type Mutation = (bytes: Uint8Array, at: number, random: SeededRandom) => void

const edge = (random: SeededRandom): number => EDGES[random.below(EDGES.length)] ?? 0

const MUTATIONS: readonly Mutation[] = [
  (bytes, at, random) => {
    bytes[at] = (bytes[at] ?? 0) ^ (1 << random.below(8))
  },
  (bytes, at, random) => {
    bytes[at] = random.below(256)
  },
  (bytes, at, random) => {
    bytes[at] = edge(random)
  },
  // Everything behind is padding: frames seem cut short, or end early.
  (bytes, at) => bytes.fill(0, at),
  // A varint of the largest value.
  (bytes, at, random) => bytes.fill(0xff, at, at + 1 + random.below(8)),
  (bytes, at, random) => {
    for (let index = at; index < Math.min(bytes.length, at + 1 + random.below(12)); index++) bytes[index] = edge(random)
  },
  (bytes, at, random) => bytes.copyWithin(random.below(bytes.length), at, at + 1 + random.below(16)),
]

function mutate(bytes: Uint8Array, random: SeededRandom): void {
  for (let count = 1 + random.below(3); count > 0; count--) {
    MUTATIONS[random.below(MUTATIONS.length)]?.(bytes, random.below(bytes.length), random)
  }
}

/**
 * While `work` runs, a part of all packets that are sealed is changed.
 *
 * @param rate chance per packet.
 * @returns packets changed.
 */
export function withMutations(random: SeededRandom, rate: number, work: () => void): number {
  const seal = PacketKeys.prototype.seal
  let count = 0
  PacketKeys.prototype.seal = function (number, headerView, plainView, out, at) {
    if (!random.chance(rate)) return seal.call(this, number, headerView, plainView, out, at)
    count++
    mutate(plainView, random)
    return seal.call(this, number, headerView, plainView, out, at)
  }
  try {
    work()
  } finally {
    PacketKeys.prototype.seal = seal
  }
  return count
}
