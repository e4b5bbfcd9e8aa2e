import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError } from '../../../src/errors.ts'
import { readSyncOptions, type SyncOptions } from '../../../src/sync/options.ts'

function problemsOf(options: SyncOptions): readonly string[] {
  try {
    readSyncOptions(options)
    return []
  } catch (error) {
    assert.ok(error instanceof EdgeError && Array.isArray(error.details.problems))
    return error.details.problems.map(String)
  }
}

test('an upstream without credentials is refused before the link finds out', () => {
  const routes = [{ from: 'a/*', to: 'c:x/{topic}' }]
  const withUrl = (url: string): SyncOptions => ({ upstreams: [{ name: 'c', url }], routes })
  assert.deepEqual(problemsOf(withUrl('iggy+tcp://user:pw@central')), [])
  assert.deepEqual(problemsOf(withUrl('iggy+tcp://token@central')), [])
  assert.deepEqual(problemsOf(withUrl('iggy+tcp://central')), [
    'sync upstream "c": expected user:password@ or token@ in its url',
  ])
})

test('all problems come at once, and a route names itself', () => {
  const upstreams = [{ name: 'c', url: 'http://central' }]
  const routes = [
    { from: 'a', to: 'c:x/y' },
    { from: 'a/*', to: '' },
  ]
  const problems = problemsOf({ upstreams, routes })
  assert.equal(problems.length, 3)
  assert.match(problems.join('\n'), /route from "a\/\*" to "": expected upstream:stream\/topic/)
})
