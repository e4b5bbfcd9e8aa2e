/**
 * Keeps the package's HTTP/2 streams from hanging Node: the package closes a stream and destroys it in the same turn. Node
 * then forgets a stream of which nghttp2 still holds frames, and is asked for its data for ever: the event loop stands still
 * while memory grows (seen with Node 26.12.1). So a destroy that follows a close waits until the frames are gone.
 */
import { subscribe } from 'node:diagnostics_channel'
import type { Http2Stream } from 'node:http2'

/** The reset that `close` sends leaves in the next turns, and the stream's frames go with it. */
const DESTROY_DELAY_MS = 100
const PROTOCOL_HEADER = ':protocol'
let isGuarding = false

/** Guards all WebTransport streams that this process makes from now on. */
export function guardHttp2Streams(): void {
  if (isGuarding) return
  isGuarding = true
  subscribe('http2.server.stream.created', guardCreated)
  subscribe('http2.client.stream.created', guardCreated)
}

function guardCreated(message: unknown): void {
  const { stream, headers } = message as { stream: Http2Stream; headers: Readonly<Record<string, unknown>> }
  if (headers[PROTOCOL_HEADER] === 'webtransport') destroyAfterClose(stream)
}

/** Lets a `destroy` without an error that comes in the same turn as `close` happen later. */
export function destroyAfterClose(stream: Pick<Http2Stream, 'close' | 'destroy' | 'destroyed'>): void {
  const [close, destroy] = [stream.close.bind(stream), stream.destroy.bind(stream)]
  let isInClosingTurn = false
  stream.close = (...args: Parameters<Http2Stream['close']>) => {
    close(...args)
    isInClosingTurn = true
    setImmediate(() => {
      isInClosingTurn = false
    })
  }
  const destroyLater = (): void => {
    setTimeout(() => {
      if (!stream.destroyed) destroy()
    }, DESTROY_DELAY_MS).unref()
  }
  stream.destroy = ((error?: Error) => {
    if (error !== undefined || !isInClosingTurn) return destroy(error)
    destroyLater()
    return stream
  }) as Http2Stream['destroy']
}
