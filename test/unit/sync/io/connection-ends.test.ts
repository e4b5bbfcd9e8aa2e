import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { beforeEach, test } from 'node:test'
import { ConnectionEnds } from '../../../../src/sync/io/connection-ends.ts'

const INTERVAL_US = 30_000_000

let nowUs = 0
let newsCount = 0
let ends: ConnectionEnds

beforeEach(() => {
  nowUs = 0
  newsCount = 0
  ends = new ConnectionEnds({
    clock: { wallUs: () => 0n, monotonicUs: () => nowUs },
    lookIntervalUs: INTERVAL_US,
    onNews: () => {
      newsCount++
      look() // Whoever is told looks at the server, over a new connection.
    },
  })
})

let last = new EventEmitter()
function look(): void {
  last = new EventEmitter()
  ends.carries(last, true)
}

test('a server that closes what is idle for five seconds is not looked at because of that', () => {
  look()
  for (let round = 0; round < 100; round++) {
    nowUs += 5_000_000
    last.emit('close')
  }
  assert.equal(newsCount, 0)
})

test('the end of a connection that carried records is news once', () => {
  const socket = new EventEmitter()
  ends.carries(socket, false)
  ends.carries(socket, true)
  socket.emit('close')
  assert.equal(newsCount, 1)
  last.emit('close')
  assert.equal(newsCount, 1)
})

test('what was kept from one look to the next was not closed for being idle', () => {
  look()
  nowUs += INTERVAL_US
  ends.carries(last, true)
  nowUs += 1
  last.emit('close')
  assert.equal(newsCount, 1)
})

test('what was closed on this side, or whose end an answer announced, is no news', () => {
  const [ours, announced] = [new EventEmitter(), new EventEmitter()]
  for (const socket of [ours, announced]) ends.carries(socket, false)
  ours.emit('timeout')
  ours.emit('close')
  ends.announced(announced)
  announced.emit('close')
  assert.equal(newsCount, 0)
})
