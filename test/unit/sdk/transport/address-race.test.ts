import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { firstOf } from '../../../../src/sdk/transport/address-race.ts'
import type { HostAddress } from '../../../../src/sdk/transport/lookup.ts'

const FOUR: HostAddress = { address: '192.0.2.1', family: 4 }
const OTHER_FOUR: HostAddress = { address: '192.0.2.2', family: 4 }
const SIX: HostAddress = { address: '2001:db8::1', family: 6 }

/** Addresses that answer or refuse after so many ms, and for ever say nothing where they are not named. */
function network(context: TestContext, answers: Readonly<Record<string, number | Error>>) {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const started: string[] = []
  const abandoned: string[] = []
  const start = ({ address }: HostAddress) => {
    started.push(address)
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const answer = answers[address]
    if (answer instanceof Error) reject(answer)
    else if (answer !== undefined) setTimeout(() => resolve(address), answer)
    return { connected: promise, abandon: () => void abandoned.push(address) }
  }
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 50) {
      context.mock.timers.tick(50)
      await setImmediate()
    }
  }
  return { start, started, abandoned, pass }
}

const NEVER = new AbortController().signal

test('an address far away is reached though the one behind it is dead', async (context) => {
  const { start, abandoned, pass } = network(context, { [FOUR.address]: 3000 })
  const racing = firstOf([FOUR, OTHER_FOUR], start, NEVER)
  await pass(3000)
  assert.equal(await racing, FOUR.address)
  assert.deepEqual(abandoned, [OTHER_FOUR.address])
})

test('an address that is dead costs a quarter of a second, and families take turns', async (context) => {
  const { start, started, abandoned, pass } = network(context, { [FOUR.address]: 50 })
  const racing = firstOf([SIX, SIX, FOUR, OTHER_FOUR], start, NEVER)
  await pass(300)
  assert.equal(await racing, FOUR.address)
  assert.deepEqual([started, abandoned], [[SIX.address, FOUR.address], [SIX.address]])
})

test('an address that refuses costs nothing, and when all do the last one tells why', async (context) => {
  const { start, abandoned } = network(context, {
    [SIX.address]: new Error('no route'),
    [FOUR.address]: new Error('refused'),
  })
  await assert.rejects(firstOf([SIX, FOUR], start, NEVER), /refused/)
  assert.deepEqual(abandoned, [])
})

test('a race that is called off abandons every address, and starts no other', async (context) => {
  const { start, started, abandoned, pass } = network(context, {})
  const stop = new AbortController()
  const racing = firstOf([SIX, FOUR, OTHER_FOUR], start, stop.signal)
  await pass(250)
  stop.abort(new Error('called off'))
  await assert.rejects(racing, /called off/)
  await pass(1000)
  assert.deepEqual(
    [started, abandoned],
    [
      [SIX.address, FOUR.address],
      [SIX.address, FOUR.address],
    ],
  )
})
