/**
 * Binds one WebTransport session on `/edge` to the session core: reads frames, carries out what the core decides, asks the
 * broker. Decides nothing itself.
 */
import { EdgeError, toEdgeError } from '../../errors.ts'
import type { ProducerTag } from '../../log/api.ts'
import type { QuicSession, QuicSessionEvents, QuicStream, QuicStreamEvents } from '../../quic-edge/index.ts'
import { type Auth, EDGE_CODES, type EdgeLimits, type Frame } from '../../sdk/wire/edge/index.ts'
import { DeviceSession } from './core/device-session.ts'
import type { Effect, Input, LossReason, Moment, Refusal, SequenceTag, Settlement } from './core/exchange.ts'
import { DEVICE_DEFAULTS } from './defaults.ts'
import { DeviceStreams, readDatagram } from './device-streams.ts'
import type { DeviceBroker, DeviceGrant, DeviceRead, DeviceSource, DeviceTarget } from './ports.ts'

/** What a connection asks of the hub it belongs to. */
export interface ConnectionHost {
  readonly broker: DeviceBroker
  readonly limits: EdgeLimits
  moment(): Moment
  /** Checks the credential and takes over from an older session of the same device. */
  admit(connection: DeviceConnection, name: string, auth: Auth, epoch: number): Promise<DeviceGrant>
  lost(connection: DeviceConnection, loss: { reason: LossReason; lane: number; first: number; count: number }): void
  closed(connection: DeviceConnection, code: number, reason: string): void
}

export class DeviceConnection implements QuicSessionEvents {
  readonly session: QuicSession
  /** Set with the credential. */
  deviceName: string | undefined
  readonly #host: ConnectionHost
  readonly #core: DeviceSession
  readonly #streams: DeviceStreams
  readonly #targets = new Map<number, DeviceTarget>()
  readonly #sources = new Map<number, { readonly source: DeviceSource; readonly unsubscribe: () => void }>()
  #grant: DeviceGrant | undefined
  /** Inputs and effects that wait for the one being carried out. */
  readonly #inputs: Input[] = []
  #isRunning = false
  #settlements: Settlement[] = []
  #openReceipts = 0
  readonly #onSettled: (() => void)[] = []
  #isClosed = false

  constructor(session: QuicSession, host: ConnectionHost) {
    this.session = session
    this.#host = host
    this.#core = new DeviceSession({ limits: host.limits, startedMs: host.moment().monotonicMs })
    const reads = () => {
      if (this.#isClosed || this.#core.phase === 'authenticating') return 'nothing'
      return this.#core.phase === 'waiting' ? 'hello' : 'everything'
    }
    this.#streams = new DeviceStreams({
      frame: (stream, frame, sizeBytes) => this.#run({ type: 'frame', stream, frame, sizeBytes }),
      refused: (stream: number, refusal: Refusal) => this.#run({ type: 'refused', stream, refusal }),
      ended: (stream) => this.#run({ type: 'stream-ended', stream }),
      get reads() {
        return reads()
      },
    })
  }

  get isKnown(): boolean {
    return this.#grant !== undefined
  }

  get unackedBytes(): number {
    return this.#core.unackedBytes
  }

  // ---- the QUIC session

  streamOpened(stream: QuicStream): QuicStreamEvents | null {
    if (this.#streams.count >= this.#host.limits.streams) return null
    this.#streams.add(stream)
    return {
      data: (bytesView) => {
        if (!this.#streams.received(stream.id, bytesView)) this.#close(EDGE_CODES.noRoom.code, 'first flight too large')
      },
      ended: () => this.#streams.ended(stream.id),
      drained: () => {},
      closed: () => {
        this.#streams.remove(stream.id)
        this.#run({ type: 'stream-ended', stream: stream.id })
      },
    }
  }

  datagram(bytesView: Uint8Array): void {
    const frame = this.#core.phase === 'open' ? readDatagram(bytesView) : undefined
    if (frame !== undefined) this.#run({ type: 'datagram', frame })
    else this.#host.lost(this, { reason: 'datagram-dropped', lane: 0, first: 0, count: 1 })
  }

  closed(code: number, reason: string): void {
    this.#ended(code, reason)
  }

  // ---- the hub

  tick(): void {
    this.#run({ type: 'tick' })
  }

  /** Ends the session; draining, it still acknowledges what is under way. */
  end(code: number, retryMs: number, isDraining: boolean): void {
    this.#run({ type: 'end', code, retryMs, isDraining })
  }

  setWindow(bytes: number, readings: number): void {
    this.#run({ type: 'set-window', bytes, readings })
  }

  /** Whether nothing that this session handed to the log is under way. */
  get isSettled(): boolean {
    return this.#openReceipts === 0
  }

  async whenSettled(): Promise<void> {
    if (!this.isSettled) await new Promise<void>((resolve) => this.#onSettled.push(resolve))
  }

  // ---- the core

  /** Steps the core, one input after the other, and carries out what comes of each. */
  #run(input: Input): void {
    if (this.#isClosed) return
    this.#inputs.push(input)
    if (this.#isRunning) return
    this.#isRunning = true
    try {
      for (let next = this.#inputs.shift(); next !== undefined; next = this.#inputs.shift()) {
        this.#carryOutAll(this.#core.step(next, this.#host.moment()))
      }
    } finally {
      this.#isRunning = false
    }
  }

  /** In order; what an answer brings comes before what is left, so that no later run overtakes it. */
  #carryOutAll(effects: readonly Effect[]): void {
    const left = [...effects]
    for (let effect = left.shift(); effect !== undefined; effect = left.shift()) {
      const answer = this.#carryOut(effect)
      if (answer !== undefined) left.unshift(...this.#core.step(answer, this.#host.moment()))
    }
  }

  /** @returns the answer of those effects that have one in the same turn. */
  #carryOut(effect: Effect): Input | undefined {
    switch (effect.type) {
      case 'send':
        this.#send(effect.stream, effect.frame)
        return undefined
      case 'authenticate':
        void this.#authenticate(effect.name, effect.auth, effect.epoch)
        return undefined
      case 'resolve':
        return this.#resolve(effect)
      case 'append':
        return this.#append(effect)
      case 'record':
        this.#record(effect.ticket, effect.tag)
        return undefined
      case 'lost':
        this.#host.lost(this, effect)
        return undefined
      case 'open-source':
        return this.#openSource(effect)
      case 'read':
        return this.#read(effect)
      case 'store-offset':
        this.#sources.get(effect.subscription)?.source.storeOffset(effect.offset)
        return undefined
      case 'close-source':
        this.#sources.get(effect.subscription)?.unsubscribe()
        this.#sources.delete(effect.subscription)
        return undefined
      case 'end-stream':
        this.#streams.end(effect.stream)
        return undefined
      case 'close':
        this.#close(effect.code, effect.reason)
        return undefined
    }
  }

  #send(stream: number, frame: Frame): void {
    // Windows bound what is sent down: a device with this much unread does not read its acknowledgements either.
    if (!this.#streams.send(stream, frame)) this.#close(EDGE_CODES.noRoom.code, 'the device does not read')
  }

  async #authenticate(name: string, auth: Auth, epoch: number): Promise<void> {
    try {
      const grant = await this.#host.admit(this, name, auth, epoch)
      if (this.#isClosed) return
      this.#grant = grant
      grant.onRevoked = () => this.end(EDGE_CODES.unauthenticated.code, EDGE_CODES.unauthenticated.retryMs, false)
      this.#streams.maxFrameBytes = this.#host.limits.maxFrameBytes
      const lanes = this.#host.broker.lanes(grant.device, epoch)
      const welcome = { session: this.session.id, mayReadAllKeys: grant.mayReadAllKeys, lanes }
      this.#run({ type: 'authenticated', welcome })
    } catch (error) {
      this.#run({ type: 'authentication-failed', error: toEdgeError(error) })
    }
    this.#streams.resume()
  }

  #resolve({ alias, topic, partition }: Extract<Effect, { type: 'resolve' }>): Input | undefined {
    try {
      const target = this.#grant?.publishTo(topic, partition)
      if (target === undefined) return undefined
      this.#targets.set(alias, target)
      const { partitionId, promise, maxPayloadBytes } = target
      return { type: 'resolved', alias, target: { partitionId, promise, maxPayloadBytes } }
    } catch (error) {
      return { type: 'resolve-failed', alias, error: toEdgeError(error) }
    }
  }

  #append({ ticket, alias, batch, tag }: Extract<Effect, { type: 'append' }>): Input | undefined {
    const target = this.#targets.get(alias)
    if (target === undefined) return undefined
    try {
      // A datagram has no sequence, and nobody waits for it.
      const receipt = tag === null ? UNWATCHED : this.#receipt(ticket)
      const { baseOffset, isDropped } = target.append(batch, receipt, tag === null ? undefined : this.#tagged(tag))
      return { type: 'appended', ticket, offset: isDropped ? null : baseOffset }
    } catch (error) {
      if (tag !== null) this.#receiptDone()
      return { type: 'append-refused', ticket, error: toEdgeError(error) }
    }
  }

  #record(ticket: number, tag: SequenceTag): void {
    const receipt = this.#receipt(ticket)
    try {
      this.#host.broker.record(this.#tagged(tag), receipt)
    } catch (error) {
      receipt.settled(toEdgeError(error))
    }
  }

  /** Settlements of one turn are told together: one acknowledgement a lane. */
  #receipt(ticket: number): { settled(error: EdgeError | null): void } {
    this.#openReceipts++
    return {
      settled: (error) => {
        this.#receiptDone()
        if (this.#settlements.length === 0) queueMicrotask(() => this.#flushSettlements())
        this.#settlements.push({ ticket, error })
      },
    }
  }

  #receiptDone(): void {
    this.#openReceipts--
    if (this.#openReceipts === 0) for (const resolve of this.#onSettled.splice(0)) resolve()
  }

  #flushSettlements(): void {
    const results = this.#settlements
    this.#settlements = []
    this.#run({ type: 'settled', results })
  }

  #tagged(tag: SequenceTag): ProducerTag {
    return { ...tag, device: this.#grant?.device ?? 0 }
  }

  #openSource({ subscription, topic, partition }: Extract<Effect, { type: 'open-source' }>): Input | undefined {
    try {
      const source = this.#grant?.readFrom(topic, partition)
      if (source === undefined) return undefined
      const stopGrowing = source.onAppended(() => {
        this.#run({ type: 'source-grew', subscription, endOffset: source.endOffset })
      })
      const stopWaiting = source.onGone(() => {
        const error = new EdgeError('EDGE_TOPIC_NOT_FOUND', `topic ${topic} is not what was subscribed to`)
        this.#run({ type: 'read-failed', subscription, error })
      })
      const unsubscribe = () => {
        stopGrowing()
        stopWaiting()
      }
      this.#sources.set(subscription, { source, unsubscribe })
      const { incarnation, startOffset, endOffset } = source
      return {
        type: 'source-opened',
        subscription,
        source: { incarnation, storedOffset: source.storedOffset(), startOffset, endOffset },
      }
    } catch (error) {
      return { type: 'source-refused', subscription, error: toEdgeError(error) }
    }
  }

  #read(effect: Extract<Effect, { type: 'read' }>): Input | undefined {
    const { subscription } = effect
    const source = this.#sources.get(subscription)?.source
    if (source === undefined) return undefined
    try {
      const read = source.read(effect.fromOffset, effect.maxCount, effect.maxBytes)
      if (!(read instanceof Promise)) return readDone(subscription, source, read)
      // Its number may be another subscription's by then.
      const answer = (input: Input) => {
        if (this.#sources.get(subscription)?.source === source) this.#run(input)
      }
      read.then(
        (done) => answer(readDone(subscription, source, done)),
        (error) => answer({ type: 'read-failed', subscription, error: toEdgeError(error) }),
      )
      return undefined
    } catch (error) {
      return { type: 'read-failed', subscription, error: toEdgeError(error) }
    }
  }

  /** The last frames are given a moment to leave: closing a session throws away what its streams still hold. */
  #close(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#streams.endAll()
    this.#ended(code, reason)
    setTimeout(() => this.session.close(code, reason), DEVICE_DEFAULTS.closeLingerMs)
  }

  #ended(code: number, reason: string): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#grant !== undefined) this.#grant.onRevoked = null
    for (const { unsubscribe } of this.#sources.values()) unsubscribe()
    this.#sources.clear()
    this.#host.closed(this, code, reason)
  }
}

const UNWATCHED = { settled: () => {} }

function readDone(subscription: number, source: DeviceSource, read: DeviceRead): Input {
  const { messages, nextOffset } = read
  const facts = { messages, nextOffset, endOffset: source.endOffset, hasHole: read.hole !== undefined }
  return { type: 'read-done', subscription, read: facts }
}
