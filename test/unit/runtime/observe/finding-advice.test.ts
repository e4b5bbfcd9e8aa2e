import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { FINDING_ADVICE, findingAdvice } from '../../../../src/runtime/observe/finding-advice.ts'
import { filesBelow, ROOT } from '../../../support/source-tree.ts'

/** Names of events have at least three words, which settings and files do not. */
const EVENT = /'(log\.[a-z]+\.[a-z_]+)'/g

const events = filesBelow('src/log', (path) => path.endsWith('.ts') && !path.endsWith('settings.ts')).flatMap((path) =>
  [...readFileSync(join(ROOT, path), 'utf8').matchAll(EVENT)].map(([, event = '']) => event),
)
const isSetting = (event: string): boolean => event.startsWith('log.encryption.')

test('every finding of the log comes with what to do', () => {
  assert.ok(events.length > 20)
  const prefixes = FINDING_ADVICE.map(([prefix]) => prefix)
  const without = events.filter((event) => !isSetting(event) && !prefixes.some((prefix) => event.startsWith(prefix)))
  assert.deepEqual(without, [])
})

test('every advice is for a finding there is, and none is hidden by a shorter one before it', () => {
  for (const [prefix, advice] of FINDING_ADVICE) {
    const reached = events.some(
      (event) => event.startsWith(prefix) && findingAdvice({ event, level: 'error' }) === advice,
    )
    assert.ok(reached, prefix)
  }
})

test('a finding that nobody knows has advice too', () => {
  for (const level of ['error', 'warn'] as const) assert.ok(findingAdvice({ event: 'log.new', level }).length > 20)
})

test('of a topic that is full nobody says that nothing has to be done', () => {
  assert.doesNotMatch(findingAdvice({ event: 'log.topic.full', level: 'warn' }), /Nothing/)
})
