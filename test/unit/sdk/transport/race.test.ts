import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { inTurns } from '../../../../src/sdk/transport/connect-host.ts'
import { firstOf, untilRefused } from '../../../../src/sdk/transport/race.ts'

const HEAD_START_MS = 250
const NEVER = new AbortController().signal

/** Ways that answer after so many ms, or fail at once; those without a figure never say anything. */
function network(context: TestContext, answers: Readonly<Record<string, number | Error>>) {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const started: string[] = []
  const abandoned: string[] = []
  const start = (way: string) => {
    started.push(way)
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const answer = answers[way]
    if (answer instanceof Error) reject(answer)
    else if (answer !== undefined) setTimeout(() => resolve(way), answer)
    return { outcome: promise, abandon: () => void abandoned.push(way) }
  }
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 50) {
      context.mock.timers.tick(50)
      await setImmediate()
    }
  }
  return { start, started, abandoned, pass }
}

test('a way that takes seconds comes about though the one behind it is dead', async (context) => {
  const { start, abandoned, pass } = network(context, { far: 3000 })
  const racing = firstOf(['far', 'dead'], start, HEAD_START_MS, NEVER)
  await pass(3000)
  assert.equal(await racing, 'far')
  assert.deepEqual(abandoned, ['dead'])
})

test('a dead way costs the head start of the next', async (context) => {
  const { start, started, abandoned, pass } = network(context, { near: 50 })
  const racing = firstOf(['dead', 'near', 'other'], start, HEAD_START_MS, NEVER)
  await pass(300)
  assert.equal(await racing, 'near')
  assert.deepEqual([started, abandoned], [['dead', 'near'], ['dead']])
})

test('a way that fails costs nothing, and when all do the last one tells why', async (context) => {
  const { start, abandoned } = network(context, { first: new Error('no route'), second: new Error('refused') })
  await assert.rejects(firstOf(['first', 'second'], start, HEAD_START_MS, NEVER), /refused/)
  assert.deepEqual(abandoned, [])
})

test('what is silent is begun anew beside itself, and goes on; what was refused is not', async (context) => {
  const { start, started, abandoned, pass } = network(context, { 'try 2': 100, refused: new Error('refused') })
  let count = 0
  const again = firstOf(
    [1, 2, 3],
    untilRefused(() => start(`try ${++count}`)),
    5000,
    NEVER,
  )
  await pass(5100)
  assert.equal(await again, 'try 2')
  assert.deepEqual([started, abandoned], [['try 1', 'try 2'], ['try 1']])
  await assert.rejects(
    firstOf(
      [1, 2, 3],
      untilRefused(() => start('refused')),
      5000,
      NEVER,
    ),
    /refused/,
  )
  assert.deepEqual(started.slice(2), ['refused'])
})

test('of two ways that come about in the same moment one is abandoned', async (context) => {
  const { start, abandoned, pass } = network(context, { first: 300, second: 50 })
  const racing = firstOf(['first', 'second'], start, HEAD_START_MS, NEVER)
  await pass(300)
  const winner = await racing
  assert.deepEqual(
    abandoned,
    ['first', 'second'].filter((way) => way !== winner),
  )
})

test('a race that is called off abandons every way, and starts no other', async (context) => {
  const { start, started, abandoned, pass } = network(context, {})
  const stop = new AbortController()
  const racing = firstOf(['first', 'second', 'third'], start, HEAD_START_MS, stop.signal)
  await pass(250)
  stop.abort(new Error('called off'))
  await assert.rejects(racing, /called off/)
  await pass(1000)
  assert.deepEqual(started, ['first', 'second'])
  assert.deepEqual(abandoned, started)
})

test('addresses of both families take turns, the family of the first one first', () => {
  const four = (address: string) => ({ address, family: 4 }) as const
  const six = (address: string) => ({ address, family: 6 }) as const
  const given = [six('a'), six('b'), six('c'), four('1'), four('2')]
  assert.deepEqual(
    inTurns(given).map(({ address }) => address),
    ['a', '1', 'b', '2', 'c'],
  )
  assert.deepEqual(inTurns([four('1')]), [four('1')])
})
