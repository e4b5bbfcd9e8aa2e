/**
 * What client and server do with their connection in the simulation: streams of many sizes with bytes that follow from
 * stream and offset, echoed by a server that sometimes reads slowly; resets and stops in between. Whatever arrives is held
 * against what must arrive.
 */
import type { EngineConnection, EngineStream } from '../../../src/quic-edge/engine/connection/api.ts'
import type { SeededRandom } from '../seeded-random.ts'
import type { VirtualTime } from './virtual-time.ts'

const WRITE_SIZE_MAX = 5000
const LARGE_SIZE_MAX = 120_000
const ONE_WAY_SIZE_MAX = 20_000
const SLOW_READ_MS = 50
const RESET_CODE = 7
const STOP_CODE = 5

/** The byte at `offset` of a stream: differs between streams, and within each over any distance that a bug may shift by. */
const byteAt = (streamId: number, offset: number): number => (streamId * 131 + offset * 7 + (offset >> 9) * 13) & 0xff

function bytesAt(streamId: number, offset: number, size: number): Uint8Array {
  const bytes = new Uint8Array(size)
  for (let index = 0; index < size; index++) bytes[index] = byteAt(streamId, offset + index)
  return bytes
}

export interface LoadHost {
  readonly time: VirtualTime
  readonly random: SeededRandom
  fail(what: string): void
}

/** Reads a stream and compares each byte. */
class Checker {
  readonly #host: LoadHost
  readonly #stream: EngineStream
  offset = 0

  constructor(host: LoadHost, stream: EngineStream) {
    this.#host = host
    this.#stream = stream
  }

  readAll(): void {
    for (let chunk = this.#stream.read(); chunk !== null; chunk = this.#stream.read()) {
      for (const byte of chunk) {
        if (byte !== byteAt(this.#stream.id, this.offset++)) {
          this.#host.fail(`stream ${this.#stream.id} differs at ${this.offset - 1}`)
        }
      }
      this.#stream.grant(chunk.length)
    }
  }
}

export class ClientLoad {
  readonly #host: LoadHost
  readonly #connection: EngineConnection
  readonly streamCount: number
  readonly oneWayCount: number
  #openedCount = 0
  #oneWayOpenedCount = 0
  doneCount = 0
  resetCount = 0
  /** Streams of the server's that came back for our one-way streams. */
  answerCount = 0

  constructor(host: LoadHost, connection: EngineConnection) {
    this.#host = host
    this.#connection = connection
    this.streamCount = 20 + host.random.below(40)
    this.oneWayCount = host.random.below(15)
    connection.onStreamsAvailable = () => this.open()
    connection.onStream = (stream) => this.#readAnswer(stream)
  }

  get isDone(): boolean {
    return (
      this.doneCount === this.streamCount &&
      this.#oneWayOpenedCount === this.oneWayCount &&
      this.answerCount === this.oneWayCount
    )
  }

  /** Opens as many streams as the server allows. */
  open(): void {
    while (this.#openedCount < this.streamCount) {
      const stream = this.#connection.openStream('bidirectional')
      if (stream === null) break
      this.#openedCount++
      this.#use(stream)
    }
    while (this.#oneWayOpenedCount < this.oneWayCount) {
      const stream = this.#connection.openStream('unidirectional')
      if (stream === null) break
      this.#oneWayOpenedCount++
      const size = this.#host.random.below(ONE_WAY_SIZE_MAX)
      stream.write(bytesAt(stream.id, 0, size))
      stream.end()
    }
  }

  #use(stream: EngineStream): void {
    const { random, fail } = this.#host
    const size = this.#size()
    const isReset = random.chance(0.08)
    const isStopped = random.chance(0.05)
    const checker = new Checker(this.#host, stream)
    let sent = 0
    const feed = () => {
      while (sent < size) {
        const chunkSize = Math.min(size - sent, 1 + random.below(WRITE_SIZE_MAX))
        const chunk = bytesAt(stream.id, sent, chunkSize)
        sent += chunkSize
        if (isReset && sent > size / 2) {
          stream.reset(RESET_CODE)
          return
        }
        if (!stream.write(chunk)) return
      }
      stream.end()
    }
    stream.onDrain = feed
    stream.onData = () => {
      checker.readAll()
      if (isStopped && checker.offset > size / 2) stream.stopSending(STOP_CODE)
      else if (stream.isEnded && checker.offset !== size)
        fail(`stream ${stream.id}: ${checker.offset} of ${size} bytes`)
    }
    stream.onDone = () => {
      this.doneCount++
      if (stream.resetCode !== undefined) this.resetCount++
      if (stream.resetCode !== undefined && !isReset && !isStopped) fail(`stream ${stream.id} was reset by nobody`)
      this.open()
    }
    feed()
  }

  #size(): number {
    const { random } = this.#host
    if (random.chance(0.5)) return 200
    return random.chance(0.1) ? 0 : Math.floor(random.next() * random.next() * LARGE_SIZE_MAX)
  }

  /** The first four bytes name the stream that is answered. */
  #readAnswer(stream: EngineStream): void {
    const head: number[] = []
    let rest = 0
    let sourceId = 0
    stream.onData = () => {
      for (let chunk = stream.read(); chunk !== null; chunk = stream.read()) {
        for (const byte of chunk) {
          if (head.length === 4) {
            if (byte !== byteAt(sourceId, rest++)) this.#host.fail(`answer to ${sourceId} differs at ${rest - 1}`)
          } else {
            head.push(byte)
            sourceId = sourceId * 256 + byte
          }
        }
        stream.grant(chunk.length)
      }
      if (stream.isEnded) this.answerCount++
    }
  }
}

/** Echoes two-way streams; answers one-way streams with one of its own. */
export class ServerLoad {
  readonly #host: LoadHost
  readonly #connection: EngineConnection
  readonly #isSlow: boolean
  /** Answers that the client's limit does not let through yet. */
  readonly #answers: Uint8Array[] = []

  constructor(host: LoadHost, connection: EngineConnection) {
    this.#host = host
    this.#connection = connection
    this.#isSlow = host.random.chance(0.3)
    connection.onStream = (stream) => (stream.isBidirectional ? this.#echo(stream) : this.#collect(stream))
    connection.onStreamsAvailable = () => this.#answer()
  }

  #echo(stream: EngineStream): void {
    const { time, random } = this.#host
    let isPaused = false
    const go = () => {
      while (!isPaused) {
        const chunk = stream.read()
        if (chunk === null) break
        stream.grant(chunk.length)
        isPaused = !stream.write(chunk)
      }
      if (stream.isEnded && !isPaused) stream.end()
    }
    stream.onDrain = () => {
      isPaused = false
      go()
    }
    stream.onData = () => {
      if (this.#isSlow && random.chance(0.3)) time.after(random.next() * SLOW_READ_MS, go)
      else go()
    }
    stream.onReset = (code) => stream.reset(code)
    stream.onStop = (code) => stream.stopSending(code)
  }

  #collect(stream: EngineStream): void {
    const checker = new Checker(this.#host, stream)
    stream.onData = () => {
      checker.readAll()
      if (!stream.isEnded) return
      const head = Buffer.alloc(4)
      head.writeUInt32BE(stream.id)
      this.#answers.push(Buffer.concat([head, bytesAt(stream.id, 0, checker.offset)]))
      this.#answer()
    }
  }

  #answer(): void {
    while (this.#answers.length > 0) {
      const stream = this.#connection.openStream('unidirectional')
      if (stream === null) return
      stream.write(this.#answers.shift() ?? Buffer.alloc(0))
      stream.end()
    }
  }
}
