import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  PATH_FRAMES_MAX,
  PATH_RESPONSES_MAX,
  PATHS_MAX,
  Paths,
} from '../../../../../src/quic-edge/engine/connection/paths.ts'
import { addressOf } from '../../../../support/quic/quic-pair.ts'

const [OLD, NEW, OTHER] = [addressOf('192.0.2.1', 1), addressOf('192.0.2.1', 2), addressOf('192.0.2.9', 1)]
const TIMEOUT_MS = 100

function createPaths(isValidated = true): Paths {
  let count = 0
  return new Paths(OLD, isValidated, (size) => new Uint8Array(size).fill(++count))
}

function migrate(paths: Paths, to: typeof OLD, nowMs = 0): boolean {
  const path = paths.from(to)
  path.received(1000)
  paths.keep(path)
  return paths.migrate(path, nowMs, TIMEOUT_MS)
}

function challenges(paths: Paths): Map<string, Uint8Array> {
  const due = new Map<string, Uint8Array>()
  for (let one = paths.takeChallenge(); one !== undefined; one = paths.takeChallenge()) {
    due.set(one.path.peer.key, one.dataBytes)
  }
  return due
}

test('to an address that is not proven goes three times what came from it', () => {
  const { current } = createPaths(false)
  assert.equal(current.allowance, 0)
  current.received(1200)
  current.sent(3000)
  assert.equal(current.allowance, 600)
  assert.equal(current.isBlocked, false)
  current.sent(550)
  assert.equal(current.isBlocked, true)
  current.validate()
  assert.equal(current.allowance, Number.POSITIVE_INFINITY)
})

test('a new address is asked to prove itself, and so is the old one', () => {
  const paths = createPaths()
  assert.equal(migrate(paths, NEW), false, 'another port is no other host')
  const due = challenges(paths)
  assert.deepEqual([...due.keys()], [NEW.key, OLD.key])
  assert.equal(paths.current.isValidated, false)
  assert.equal(paths.deadlineMs, 300)
  paths.answered(new Uint8Array(8))
  assert.equal(paths.current.isValidated, false, 'any eight bytes are no answer')
  paths.answered(due.get(NEW.key) ?? new Uint8Array())
  assert.equal(paths.current.isValidated, true)
  assert.equal(paths.deadlineMs, Number.POSITIVE_INFINITY)
  assert.equal(migrate(paths, OTHER), true)
})

test('an address that does not answer is left for the last that was proven', () => {
  const paths = createPaths()
  migrate(paths, NEW)
  migrate(paths, OTHER, 50)
  assert.equal(paths.deadlineMs, 350)
  assert.equal(paths.timeout(349), true)
  assert.equal(paths.current.peer, OTHER)
  assert.equal(paths.timeout(350), true)
  assert.equal(paths.current.peer, OLD)
  assert.equal(paths.deadlineMs, Number.POSITIVE_INFINITY)
})

test('a challenge waits until something may be sent, and is repeated when lost on the path in use', () => {
  const paths = createPaths()
  const path = paths.from(NEW)
  path.received(10)
  paths.keep(path)
  paths.migrate(path, 0, TIMEOUT_MS)
  assert.deepEqual([...challenges(paths).keys()], [OLD.key])
  path.received(1000)
  assert.deepEqual([...challenges(paths).keys()], [NEW.key])
  paths.challengeLost(path)
  paths.challengeLost(paths.from(OLD))
  assert.deepEqual([...challenges(paths).keys()], [NEW.key])
})

test('paths that only probe are forgotten, oldest first, and never those in use', () => {
  const paths = createPaths()
  migrate(paths, NEW)
  for (let port = 100; port < 200; port++) paths.keep(paths.from(addressOf('192.0.2.1', port)))
  assert.equal(paths.count, PATHS_MAX)
  assert.equal(paths.from(OLD).isValidated, true)
  assert.equal(paths.from(NEW), paths.current)
  assert.notEqual(paths.from(addressOf('192.0.2.1', 100)).receivedBytes, 1)
})

test('addresses from which nothing authenticates leave no trace', () => {
  const paths = createPaths()
  for (let port = 100; port < 200; port++) paths.from(addressOf('192.0.2.1', port)).received(1200)
  assert.equal(paths.count, 1)
})

test('answers to challenges are few', () => {
  const paths = createPaths()
  for (let count = 0; count < 100; count++) paths.asked(paths.current, new Uint8Array(8).fill(count))
  let answers = 0
  while (paths.takeResponse() !== undefined) answers++
  assert.equal(answers, PATH_RESPONSES_MAX)
})

test('only so many packets of path validation are under way, whatever the peer provokes', () => {
  const paths = createPaths()
  let sentCount = 0
  for (let port = 10; port < 200; port++) {
    migrate(paths, addressOf('192.0.2.1', port))
    paths.asked(paths.current, new Uint8Array(8))
    for (const take of [() => paths.takeChallenge(), () => paths.takeResponse()]) {
      for (let one = take(); one !== undefined; one = take()) {
        paths.sent()
        sentCount++
      }
    }
  }
  assert.equal(sentCount, PATH_FRAMES_MAX)
  paths.arrivedOrLost()
  assert.notEqual(paths.takeChallenge(), undefined)
})
