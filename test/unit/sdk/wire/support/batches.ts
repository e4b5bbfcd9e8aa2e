/** Random batches: with and without ids and user headers, of every size class, with tame and with wild clocks. */

import type { StoredBatch } from '../../../../../src/sdk/wire/batch.ts'
import { encodeRecords, type OutgoingMessage } from '../../../../../src/sdk/wire/messages.ts'
import type { SeededRandom } from './random.ts'

export type Clock = 'steady' | 'jumping' | 'wild'

export function randomMessages(random: SeededRandom, count: number, clock: Clock): OutgoingMessage[] {
  let originUs = 1_700_000_000_000_000n + BigInt(random.below(1000))
  return Array.from({ length: count }, () => {
    if (clock === 'wild') originUs = random.u64()
    else if (clock === 'jumping') originUs += BigInt(random.below(2_000_000_000)) - 1_000_000_000n
    else originUs += BigInt(random.below(1000))
    const payload = random.bytes(random.below(4) === 0 ? random.below(400) : random.below(40))
    const userHeaders = random.below(3) === 0 ? random.bytes(random.below(300)) : new Uint8Array(0)
    const id = random.below(2) === 0 ? 0n : (random.u64() << 64n) | random.u64()
    return { payload, userHeaders, id, originUs }
  })
}

export function storedBatch(messages: readonly OutgoingMessage[], fields: Partial<StoredBatch> = {}): StoredBatch {
  const batch = encodeRecords(messages)
  return {
    ...batch,
    baseOffset: 100n,
    appendTimeUs: 1_700_000_001_000_000n,
    idSeed: 0x1122_3344_5566_7788n,
    skip: 0,
    take: messages.length,
    isClockTrusted: true,
    ...fields,
  }
}
