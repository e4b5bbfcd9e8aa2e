/**
 * One session of the device protocol on the edge's side. Pure: what happened comes in, what is to be done goes out; the
 * shell reads frames, asks the broker and waits.
 *
 *   waiting -- hello --> authenticating -- credential good --> open -- bye, end --> draining -- all settled --> closed
 *
 * Relies on the shell for three things: answers to `resolve` and `append` come in the same turn, before the next frame; no
 * frame comes while a credential is being checked; after `close` nothing comes but what was under way.
 */
import type { EdgeError } from '../../../errors.ts'
import {
  DEFAULT_LIMITS,
  DEVICE_MAX_FRAME_BYTES,
  EDGE_CODES,
  type EdgeCodeName,
  type EdgeLimits,
  edgeCodeOf,
  type Frame,
  PROTOCOL_VERSION,
} from '../../../sdk/wire/edge/index.ts'
import { shortText } from './aliases.ts'
import { Downlink } from './downlink.ts'
import type { Effect, Input, Moment, Refusal, WelcomeFacts } from './exchange.ts'
import type { Lane } from './lane.ts'
import { errorAbout, errorNamed } from './replies.ts'
import { Uplink } from './uplink.ts'

const HELLO_TIMEOUT_MS = 5000
/** How long unacknowledged readings may take to settle once the end is near. */
const DRAIN_TIMEOUT_MS = 5000
/** Wrong frames in a row that end the session. */
const MAX_FAULTS_IN_ROW = 16

export interface DeviceSessionOptions {
  readonly limits?: EdgeLimits
  readonly startedMs: number
  readonly createLane?: (have: number, durable: number) => Lane
}

type Phase =
  | { readonly name: 'waiting' }
  | { readonly name: 'authenticating'; readonly stream: number; readonly hello: Frame<'hello'> }
  | { readonly name: 'open' }
  | { readonly name: 'draining'; readonly code: number; readonly untilMs: number }
  | { readonly name: 'closed' }

export class DeviceSession {
  readonly #limits: EdgeLimits
  readonly #options: DeviceSessionOptions
  #phase: Phase = { name: 'waiting' }
  #controlStream = 0
  #uplink: Uplink | undefined
  #downlink: Downlink | undefined
  #heardMs: number
  #faultsInRow = 0

  constructor(options: DeviceSessionOptions) {
    this.#options = options
    this.#limits = options.limits ?? DEFAULT_LIMITS
    this.#heardMs = options.startedMs
  }

  get phase(): Phase['name'] {
    return this.#phase.name
  }

  /** Bytes of frames whose readings have not settled. */
  get unackedBytes(): number {
    return this.#uplink?.unackedBytes ?? 0
  }

  step(input: Input, now: Moment): Effect[] {
    if (this.#phase.name === 'closed') return []
    const effects = this.#dispatch(input, now)
    if (effects.some((effect) => effect.type === 'close')) {
      this.#phase = { name: 'closed' }
      return [...effects, ...(this.#downlink?.closeAll() ?? [])]
    }
    return [...effects, ...this.#closeWhenDrained()]
  }

  #dispatch(input: Input, now: Moment): Effect[] {
    switch (input.type) {
      case 'frame':
        this.#heardMs = now.monotonicMs
        this.#faultsInRow = 0
        return this.#frame(input.stream, input.frame, input.sizeBytes, now)
      case 'refused':
        this.#heardMs = now.monotonicMs
        return this.#refused(input.stream, input.refusal)
      case 'datagram':
        this.#heardMs = now.monotonicMs
        return this.#uplink?.datagram(input.frame, now) ?? []
      case 'stream-ended':
        return this.#streamEnded(input.stream)
      case 'authenticated':
        return this.#authenticated(input.welcome, now)
      case 'authentication-failed':
        return this.#authenticationFailed(input.error)
      case 'resolved':
        this.#uplink?.aliases.resolved(input.alias, input.target)
        return this.#aliasOk(input.alias, input.target.promise === 'buffered' ? 1 : 0)
      case 'resolve-failed':
        return this.#aliasRefused(input.alias, input.error)
      case 'appended':
        return this.#uplink?.appended(input.ticket, input.offset, now) ?? []
      case 'append-refused':
        return this.#uplink?.appendRefused(input.ticket, input.error, now) ?? []
      case 'settled':
        return this.#uplink?.settled(input.results) ?? []
      case 'source-opened':
        return this.#downlink?.opened(input.subscription, input.source) ?? []
      case 'source-refused':
        return this.#downlink?.refused(input.subscription, input.error) ?? []
      case 'source-grew':
        return this.#downlink?.grew(input.subscription, input.endOffset) ?? []
      case 'read-done':
        return this.#downlink?.read(input.subscription, input.read, now) ?? []
      case 'read-failed':
        return this.#downlink?.readFailed(input.subscription, input.error) ?? []
      case 'set-window':
        return this.#setWindow(input.bytes, input.readings)
      case 'end':
        return this.#end(input, now)
      case 'tick':
        return this.#tick(now)
    }
  }

  #frame(stream: number, frame: Frame, sizeBytes: number, now: Moment): Effect[] {
    if (this.#phase.name === 'waiting') return this.#firstFrame(stream, frame)
    const [uplink, downlink] = [this.#uplink, this.#downlink]
    if (uplink === undefined || downlink === undefined) return []
    switch (frame.type) {
      case 'alias':
        return this.#declare(uplink, stream, frame)
      case 'publish':
      case 'batch':
      case 'series':
        return uplink.publish(stream, frame, sizeBytes, now)
      case 'skip':
        return uplink.skip(stream, frame, sizeBytes, now)
      case 'subscribe':
        return downlink.subscribe(stream, frame)
      case 'result':
        return downlink.result(stream, frame)
      case 'end':
        return downlink.end(frame)
      case 'ping':
        if (frame.uptimeMs !== undefined) uplink.clock.observe(frame.uptimeMs, now)
        return [send(stream, { type: 'pong', number: frame.number, time: wallOf(now) })]
      case 'clock':
        uplink.clock.declare(frame.boot, frame.wall, now)
        return []
      case 'bye':
        return this.#drain(EDGE_CODES.normal.code, now)
      case 'hello':
        return [errorNamed(stream, 'hello', null, 'frameInvalid', 'a session has one hello')]
      default:
        return [errorNamed(stream, frame.type, null, 'frameUnknown', 'only the edge sends this')]
    }
  }

  #firstFrame(stream: number, frame: Frame): Effect[] {
    if (frame.type !== 'hello') return [close('frameInvalid', 'the first frame is not hello')]
    this.#controlStream = stream
    if (frame.minVersion > PROTOCOL_VERSION || frame.maxVersion < PROTOCOL_VERSION) {
      const range = `${PROTOCOL_VERSION}..${PROTOCOL_VERSION}`
      return [errorNamed(stream, 'hello', null, 'version', range), close('version', range)]
    }
    this.#phase = { name: 'authenticating', stream, hello: frame }
    return [{ type: 'authenticate', name: frame.name, auth: frame.auth, epoch: frame.epoch }]
  }

  #authenticated(welcome: WelcomeFacts, now: Moment): Effect[] {
    if (this.#phase.name !== 'authenticating') return []
    const { hello, stream } = this.#phase
    this.#phase = { name: 'open' }
    const { limits, createLane } = { limits: this.#limits, createLane: this.#options.createLane }
    this.#uplink = new Uplink({
      deviceName: hello.name,
      epoch: hello.epoch,
      limits,
      acked: hello.lanes,
      welcome,
      controlStream: stream,
      nowMs: now.monotonicMs,
      ...(createLane === undefined ? {} : { createLane }),
    })
    const maxFrameBytes = hello.options?.maxFrameBytes ?? DEVICE_MAX_FRAME_BYTES
    const { mayReadAllKeys } = welcome
    this.#downlink = new Downlink({ deviceName: hello.name, mayReadAllKeys, limits, maxFrameBytes })
    this.#learnTime(this.#uplink, hello, now)
    const frame: Frame = {
      type: 'welcome',
      version: PROTOCOL_VERSION,
      session: welcome.session,
      lanes: welcome.lanes.map(({ lane, have }) => ({ lane, sequence: have })),
      limits: differing(limits),
      time: wallOf(now),
      ...(welcome.lanes.length === 0
        ? {}
        : { durable: welcome.lanes.map(({ lane, durable }) => ({ lane, sequence: durable })) }),
    }
    const will =
      hello.options?.will === undefined
        ? []
        : [errorNamed(stream, 'hello', null, 'frameUnknown', 'wills are not available')]
    return [send(stream, frame), ...will]
  }

  #learnTime(uplink: Uplink, hello: Frame<'hello'>, now: Moment): void {
    uplink.clock.begin(hello.options?.boot)
    if (hello.options?.wall !== undefined) uplink.clock.declareCurrent(hello.options.wall, now)
    if (hello.options?.uptimeMs !== undefined) uplink.clock.observe(hello.options.uptimeMs, now)
  }

  #authenticationFailed(error: EdgeError): Effect[] {
    if (this.#phase.name !== 'authenticating') return []
    const { code, retryMs } = EDGE_CODES[edgeCodeOf(error)]
    // Nothing about the reason: a stranger learns only that the credential was not taken.
    const text = error.kind === 'auth' ? '' : shortText(error.message)
    return [
      errorAbout(this.#phase.stream, 'hello', null, { code, retryMs, text }),
      { type: 'close', code, reason: text },
    ]
  }

  /** Where the alias of the current turn was declared: its answer follows at once. */
  #aliasStream = 0

  #declare(uplink: Uplink, stream: number, frame: Frame<'alias'>): Effect[] {
    this.#aliasStream = stream
    return uplink.declare(stream, frame)
  }

  #aliasOk(alias: number, promise: number): Effect[] {
    return [send(this.#aliasStream, { type: 'alias-ok', alias, promise })]
  }

  #aliasRefused(alias: number, error: EdgeError): Effect[] {
    const refusal = this.#uplink?.aliases.refused(alias, error)
    return refusal === undefined ? [] : [errorAbout(this.#aliasStream, 'alias', alias, refusal)]
  }

  #refused(stream: number, { fault, of, ref, text }: Refusal): Effect[] {
    const name = FAULT_CODES[fault]
    if (fault === 'framing' || fault === 'frame-too-large') return [close(name, text)]
    this.#faultsInRow++
    if (this.#phase.name === 'waiting' || this.#faultsInRow >= MAX_FAULTS_IN_ROW) return [close(name, text)]
    const { code, retryMs } = EDGE_CODES[name]
    return [send(stream, { type: 'error', code, of, ref, retryMs, text: shortText(text) })]
  }

  #streamEnded(stream: number): Effect[] {
    const isControl = this.#phase.name !== 'waiting' && stream === this.#controlStream
    if (isControl) return [close('normal', 'the control stream ended')]
    this.#uplink?.streamEnded(stream)
    return [...(this.#downlink?.streamEnded(stream) ?? []), { type: 'end-stream', stream }]
  }

  #setWindow(bytes: number, readings: number): Effect[] {
    if (this.#phase.name !== 'open') return []
    return [1, 2, 3].map((lane) => send(this.#controlStream, { type: 'window', lane, bytes, readings }))
  }

  #end(input: Extract<Input, { type: 'end' }>, now: Moment): Effect[] {
    if (!input.isDraining || this.#phase.name !== 'open') return [{ type: 'close', code: input.code, reason: '' }]
    const bye = send(this.#controlStream, { type: 'bye', code: input.code, pauseMs: input.retryMs })
    return [bye, ...this.#drain(input.code, now)]
  }

  #drain(code: number, now: Moment): Effect[] {
    this.#phase = { name: 'draining', code, untilMs: now.monotonicMs + DRAIN_TIMEOUT_MS }
    return []
  }

  #closeWhenDrained(): Effect[] {
    if (this.#phase.name !== 'draining' || this.#uplink?.isPending) return []
    const { code } = this.#phase
    this.#phase = { name: 'closed' }
    return [{ type: 'close', code, reason: '' }, ...(this.#downlink?.closeAll() ?? [])]
  }

  #tick(now: Moment): Effect[] {
    const silentMs = now.monotonicMs - this.#heardMs
    if (this.#phase.name === 'waiting') return silentMs >= HELLO_TIMEOUT_MS ? [close('helloTimeout', 'no hello')] : []
    if (this.#phase.name === 'draining') {
      return now.monotonicMs >= this.#phase.untilMs ? [{ type: 'close', code: this.#phase.code, reason: '' }] : []
    }
    if (this.#phase.name === 'open' && silentMs >= this.#limits.idleTimeoutMs) return [close('idle', 'idle')]
    return [...this.#reports(now), ...this.#resolveAgain()]
  }

  /** A session may last for weeks, and the topic be made a minute after it began. */
  #resolveAgain(): Effect[] {
    if (this.#phase.name !== 'open') return []
    this.#aliasStream = this.#controlStream
    const waiting = this.#uplink?.aliases.refusedForNow() ?? []
    return waiting.map(({ id, topic, partition }) => ({ type: 'resolve', alias: id, topic, partition }))
  }

  #reports(now: Moment): Effect[] {
    const frames = this.#uplink?.datagrams.reports(this.#uplink.aliases.values(), now) ?? []
    return frames.map((frame) => send(this.#controlStream, frame))
  }
}

const FAULT_CODES = {
  framing: 'frameInvalid',
  'frame-too-large': 'frameTooLarge',
  'frame-invalid': 'frameInvalid',
  'frame-unknown': 'frameUnknown',
} as const satisfies Record<Refusal['fault'], EdgeCodeName>

function send(stream: number, frame: Frame): Effect {
  return { type: 'send', stream, frame }
}

function close(name: EdgeCodeName, reason: string): Effect {
  return { type: 'close', code: EDGE_CODES[name].code, reason: shortText(reason) }
}

/** `welcome` names only limits that are not the defaults. */
function differing(limits: EdgeLimits): Partial<EdgeLimits> {
  const names = Object.keys(DEFAULT_LIMITS) as (keyof EdgeLimits)[]
  return Object.fromEntries(
    names.filter((name) => limits[name] !== DEFAULT_LIMITS[name]).map((name) => [name, limits[name]]),
  )
}

function wallOf(now: Moment) {
  if (!now.isWallTrusted) return null
  const milliseconds = now.wallUs / 1000n
  return {
    seconds: Number(milliseconds / 1000n),
    milliseconds: Number(milliseconds % 1000n),
    accuracyMs: now.accuracyMs,
  }
}
