/** A broker for devices that keeps everything in memory: what was appended, what was given up, when it is durable. */
import { EdgeError } from '../../src/errors.ts'
import type { ProducerLane, ProducerTag, Receipt } from '../../src/log/api.ts'
import type { DeviceBroker, DeviceGrant, DeviceSource, DownMessage, EdgeTime } from '../../src/runtime/device/index.ts'
import type { RecordBatch } from '../../src/sdk/wire/batch.ts'
import type { Auth } from '../../src/sdk/wire/edge/index.ts'
import { decodeUserHeaders } from '../../src/sdk/wire/user-headers.ts'

export interface StoredReading {
  readonly originUs: bigint
  readonly payload: string
  readonly headers: Readonly<Record<string, string>>
  readonly tag: ProducerTag | undefined
}

export class MemoryDeviceBroker implements DeviceBroker {
  readonly token = new Uint8Array(32).fill(7)
  readonly stored: StoredReading[] = []
  readonly disposed: ProducerTag[] = []
  /** What topic `commands/all` holds. */
  readonly messages: DownMessage[] = []
  storedOffset: bigint | undefined
  /** False: receipts wait for `settle`. */
  settlesAtOnce = true
  /** Credentials are looked at once it resolves. */
  authenticationGate: Promise<void> = Promise.resolve()
  /** Thrown by the next append. */
  nextAppendError: EdgeError | undefined
  /** Reads that wait, when there is a list for them. */
  heldReads: (() => void)[] | undefined
  wallUs = 1_764_439_200_000_000n
  readonly #waiting: { readonly receipt: Receipt; readonly tag: ProducerTag | undefined }[] = []
  readonly #have = new Map<string, number>()
  readonly #grown: (() => void)[] = []

  async authenticate(deviceName: string, auth: Auth): Promise<DeviceGrant> {
    await this.authenticationGate
    const isRight = auth instanceof Uint8Array && Buffer.from(auth).equals(this.token) && deviceName.startsWith('dev')
    if (!isRight) throw new EdgeError('EDGE_UNAUTHENTICATED', 'credential not taken')
    return {
      device: Number(deviceName.replace(/\D/g, '')) || 1,
      mayReadAllKeys: false,
      onRevoked: null,
      publishTo: (topicName) => {
        if (!topicName.startsWith('sensors/')) throw new EdgeError('EDGE_FORBIDDEN', `publish ${topicName}`)
        const append = (batch: RecordBatch, receipt: Receipt, tag: ProducerTag | undefined) =>
          this.#append(batch, receipt, tag)
        return { partitionId: 0, promise: 'durable', maxPayloadBytes: 1000, append }
      },
      readFrom: (topicName) => {
        if (topicName !== 'commands/all') throw new EdgeError('EDGE_TOPIC_NOT_FOUND', topicName)
        return this.#source()
      },
    }
  }

  lanes(device: number, epoch: number): ProducerLane[] {
    return [0, 1, 2, 3].flatMap((lane) => {
      const have = this.#have.get(`${device}/${epoch}/${lane}`)
      return have === undefined ? [] : [{ lane, have, durable: have }]
    })
  }

  record(tag: ProducerTag, receipt: Receipt): void {
    this.disposed.push(tag)
    this.#settleLater(receipt, tag)
  }

  time(): EdgeTime {
    return { wallUs: this.wallUs, isTrusted: true, accuracyMs: 40 }
  }

  /** What is held of a lane is known only from then on, as in the log. */
  settle(error: EdgeError | null = null): void {
    for (const { receipt, tag } of this.#waiting.splice(0)) {
      if (tag !== undefined && error === null) this.#remember(tag)
      receipt.settled(error)
    }
  }

  /** A message that consumers of `commands/all` see at once. */
  command(body: string, key?: string): void {
    const offset = BigInt(this.messages.length)
    this.messages.push({ offset, appendTimeUs: this.wallUs, key, body: Buffer.from(body) })
    for (const callback of this.#grown) callback()
  }

  #append(batch: RecordBatch, receipt: Receipt, tag: ProducerTag | undefined) {
    const error = this.nextAppendError
    this.nextAppendError = undefined
    if (error !== undefined) throw error
    const baseOffset = BigInt(this.stored.length)
    for (const record of recordsOf(batch)) this.stored.push({ ...record, tag })
    this.#settleLater(receipt, tag)
    return { baseOffset, isDropped: false }
  }

  #remember(tag: ProducerTag): void {
    this.#have.set(`${tag.device}/${tag.epoch}/${tag.lane}`, tag.firstSequence + tag.sequenceCount - 1)
  }

  #settleLater(receipt: Receipt, tag: ProducerTag | undefined): void {
    this.#waiting.push({ receipt, tag })
    if (this.settlesAtOnce) queueMicrotask(() => this.settle())
  }

  #source(): DeviceSource {
    const messages = this.messages
    return {
      incarnation: 1,
      startOffset: 0n,
      get endOffset() {
        return BigInt(messages.length)
      },
      storedOffset: () => this.storedOffset,
      storeOffset: (offset) => {
        this.storedOffset = offset
      },
      read: (fromOffset, maxCount) => {
        const found = messages.slice(Number(fromOffset), Number(fromOffset) + maxCount)
        const read = { messages: found, nextOffset: fromOffset + BigInt(found.length) }
        const held = this.heldReads
        return held === undefined ? read : new Promise((resolve) => held.push(() => resolve(read)))
      },
      onAppended: (callback) => {
        this.#grown.push(callback)
        return () => this.#grown.splice(this.#grown.indexOf(callback), 1)
      },
      onGone: () => () => {},
    }
  }
}

/** Reads the compact records that the edge packed. */
export function recordsOf({ recordsView, count, baseOriginUs }: RecordBatch): Omit<StoredReading, 'tag'>[] {
  let at = 0
  let originUs = baseOriginUs
  const varint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = BigInt(recordsView[at++] ?? 0)
      value |= (byte & 127n) << shift
      if (byte < 128n) return value
    }
  }
  return Array.from({ length: count }, () => {
    const payloadSize = Number(varint() >> 2n)
    const zigzag = varint()
    originUs += (zigzag >> 1n) ^ -(zigzag & 1n)
    const headersSize = Number(varint())
    const payload = recordsView.slice(at, at + payloadSize)
    const headers = decodeUserHeaders(recordsView.slice(at + payloadSize, at + payloadSize + headersSize))
    at += payloadSize + headersSize
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
    const named = Object.fromEntries(headers.map(({ key, value }) => [text(key.bytes), text(value.bytes)]))
    return { originUs, payload: text(payload), headers: named }
  })
}
