/** Watches every packet that is sealed in this process: no key may seal a number twice, or one below an earlier one. */
import { PacketKeys } from '../../../src/quic-edge/engine/crypto/packet-keys.ts'

export interface SealingWatch {
  /** What went wrong first. */
  readonly fault: string | undefined
  stop(): void
}

export function watchSealing(): SealingWatch {
  const seal = PacketKeys.prototype.seal
  const lastNumbers = new WeakMap<PacketKeys, number>()
  let fault: string | undefined
  PacketKeys.prototype.seal = function (number, ...rest) {
    const last = lastNumbers.get(this) ?? -1
    if (number <= last) fault ??= `number ${number} sealed after ${last} with the same keys`
    lastNumbers.set(this, number)
    return seal.call(this, number, ...rest)
  }
  return {
    get fault() {
      return fault
    },
    stop: () => {
      PacketKeys.prototype.seal = seal
    },
  }
}
