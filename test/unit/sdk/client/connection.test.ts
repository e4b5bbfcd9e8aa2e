import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../../../src/clock.ts'
import { Connection, fixedPatience } from '../../../../src/sdk/client/connection.ts'
import type { Dial } from '../../../../src/sdk/transport/transport.ts'

/** What a classic server says to the ping of the other generation. */
const CLASSIC_ERROR = Uint8Array.of(3, 0, 0, 0, 0, 0, 0, 0)

/** A server behind a link whose round trip takes so long, the dial included. */
const serverBehind =
  (roundTripMs: number): Dial =>
  async (events) => {
    await new Promise((resolve) => setTimeout(resolve, roundTripMs))
    return {
      peer: 'far away',
      write() {
        setTimeout(() => events.data(CLASSIC_ERROR), roundTripMs)
        return true
      },
      pause() {},
      resume() {},
      end() {},
      abort() {},
    }
  }

test('a server that is three seconds away is asked for its generation as long as its answer takes', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const clock: Clock = { monotonicUs: () => Date.now() * 1000, wallUs: () => BigInt(Date.now()) * 1000n }
  const settings = {
    dial: serverBehind(3500),
    generation: 'auto',
    credentials: null,
    connectTimeoutMs: 15_000,
    patience: fixedPatience(30_000),
    heartbeatIntervalMs: 0,
    maxInFlight: 1,
    clock,
    randomU128: () => 1n,
  } as const
  const opening = Connection.open(settings, new AbortController().signal)
  for (let second = 0; second < 20; second++) {
    context.mock.timers.tick(1000)
    await setImmediate()
  }
  assert.equal((await opening).dialect, 'classic')
})
