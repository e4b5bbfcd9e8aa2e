import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Turns } from '../../../../src/sync/io/turns.ts'

/** Names of those whose turn has come, in order. */
function watched() {
  const turns = new Turns()
  const begun: string[] = []
  const take = (name: string, suspicion = 0) => turns.take(suspicion, () => void begun.push(name))
  return { turns, begun, take }
}

test('requests share a link', () => {
  const { begun, take } = watched()
  for (const name of ['a', 'b', 'c']) take(name)
  assert.deepEqual(begun, ['a', 'b', 'c'])
})

test('a suspect has the link for itself: it waits for those before it, and those after it wait', () => {
  const { turns, begun, take } = watched()
  take('a')
  take('suspect', 3)
  assert.deepEqual(begun, ['a'])
  turns.end()
  take('b')
  take('c')
  assert.deepEqual(begun, ['a', 'suspect'])
  turns.end()
  assert.deepEqual(begun, ['a', 'suspect', 'b', 'c'])
})

test('of several suspects the least suspected goes first', () => {
  const { turns, begun, take } = watched()
  take('a')
  take('first', 5)
  take('second', 3)
  take('third', 3)
  for (let ends = 0; ends < 4; ends++) turns.end()
  assert.deepEqual(begun, ['a', 'second', 'third', 'first'])
})

test('others go before a suspect, but not for ever', () => {
  const { turns, begun, take } = watched()
  take('a')
  take('suspect', 3)
  for (let count = 0; count < 1000 && !begun.includes('suspect'); count++) {
    take(`b${count}`)
    turns.end()
  }
  assert.equal(begun.indexOf('suspect'), 65)
})

test('work that is shared gives its turn back, whatever comes of it', async () => {
  const { turns, begun, take } = watched()
  await turns.share(async () => void begun.push('done'))
  const failing = turns.share(async () => {
    throw new Error('no')
  })
  take('suspect', 3)
  await assert.rejects(failing, /no/)
  assert.deepEqual(begun, ['done', 'suspect'])
})
