import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../../../src/clock.ts'
import { Connection, type ConnectionSettings, fixedPatience } from '../../../../src/sdk/client/connection.ts'
import type { Dial } from '../../../../src/sdk/transport/transport.ts'

/** What a classic server says to the ping of the other generation. */
const CLASSIC_ERROR = Uint8Array.of(3, 0, 0, 0, 0, 0, 0, 0)

/** A server behind a link whose round trip takes so long, the dial included. */
const serverBehind =
  (roundTripMs: number, answer: Uint8Array | null = CLASSIC_ERROR): Dial =>
  async (events) => {
    await new Promise((resolve) => setTimeout(resolve, roundTripMs))
    return {
      peer: 'far away',
      write() {
        if (answer !== null) setTimeout(() => events.data(answer), roundTripMs)
        return true
      },
      pause() {},
      resume() {},
      end() {},
      abort() {},
    }
  }

function settingsOf(dial: Dial): ConnectionSettings {
  const clock: Clock = { monotonicUs: () => Date.now() * 1000, wallUs: () => BigInt(Date.now()) * 1000n }
  return {
    dial,
    generation: 'auto',
    credentials: null,
    connectTimeoutMs: 15_000,
    patience: fixedPatience(30_000),
    heartbeatIntervalMs: 0,
    maxInFlight: 1,
    clock,
    randomU128: () => 1n,
  }
}

async function passSeconds({ mock }: TestContext, count: number): Promise<void> {
  for (let second = 0; second < count; second++) {
    mock.timers.tick(1000)
    await setImmediate()
  }
}

test('a server that is three seconds away is asked for its generation as long as its answer takes', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const opening = Connection.open(settingsOf(serverBehind(3500)), new AbortController().signal)
  await passSeconds(context, 20)
  assert.equal((await opening).dialect, 'classic')
})

test('a server that answers in part, and no more, is given up in time', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout', 'Date'] })
  const opening = Connection.open(settingsOf(serverBehind(1, new Uint8Array(64))), new AbortController().signal)
  const refused = assert.rejects(opening, { code: 'EDGE_UPSTREAM_TIMEOUT' })
  await passSeconds(context, 20)
  await refused
})

test('who no longer wants a connection need not wait for its generation, nor for its login', async () => {
  const credentials = { kind: 'password', username: 'iggy', password: 'iggy' } as const
  for (const generation of ['auto', 'classic'] as const) {
    for (const isEarly of [true, false]) {
      const wanted = new AbortController()
      const settings = { ...settingsOf(serverBehind(1, null)), credentials, generation }
      if (isEarly) wanted.abort()
      const refused = assert.rejects(Connection.open(settings, wanted.signal), { code: 'EDGE_CONNECTION_LOST' })
      setTimeout(() => wanted.abort(), 20)
      await refused
    }
  }
})
