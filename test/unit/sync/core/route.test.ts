import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseRoute } from '../../../../src/sync/core/route.ts'
import { readSyncOptions } from '../../../../src/sync/options.ts'

const topic = (streamName: string, topicName: string) => ({ streamName, topicName })

test('a wildcard stands for any topic of a stream, and the target names it', () => {
  const route = parseRoute({ from: 'sensors/*', to: 'central:site-7/{topic}' })
  assert.equal(route.upstreamName, 'central')
  assert.deepEqual(route.target(topic('sensors', 'temp')), topic('site-7', 'temp'))
  assert.equal(route.target(topic('logs', 'temp')), undefined)
})

test('wildcards match parts of names and nothing across the slash', () => {
  const route = parseRoute({ from: 's*/t*p', to: 'c:{stream}-x/all' })
  assert.deepEqual(route.target(topic('sensors', 'temp')), topic('sensors-x', 'all'))
  assert.equal(route.target(topic('sensors', 'temps')), undefined)
  assert.equal(parseRoute({ from: 'a.b/*', to: 'c:d/e' }).target(topic('axb', 't')), undefined)
})

test('what a name holds is taken as it is, also where it reads like a placeholder', () => {
  const route = parseRoute({ from: '*/*', to: 'c:{stream}/{topic}' })
  for (const name of ['price$$', '$&', "a$'b", '{topic}', '{stream}'])
    assert.deepEqual(route.target(topic(name, name)), topic(name, name))
})

test('names that would be too long for Iggy are refused by name', () => {
  const route = parseRoute({ from: '*/*', to: `c:${'p'.repeat(200)}{stream}/t` })
  assert.throws(() => route.target(topic('s'.repeat(56), 't')), { code: 'EDGE_NAME_INVALID' })
})

test('malformed routes say what was expected', () => {
  const wrong = [
    { from: 'sensors', to: 'c:s/t' },
    { from: 'a/b/c', to: 'c:s/t' },
    { from: 'a/*', to: 's/t' },
    { from: 'a/*', to: 'c:s' },
    { from: 'a/*', to: 'c:s/' },
    { from: 'a/*', to: 'c:s/{device}' },
    { from: 'a/*', to: 'c:s/t/u' },
  ]
  for (const spec of wrong) assert.throws(() => parseRoute(spec), { code: 'EDGE_CONFIG_INVALID' }, JSON.stringify(spec))
})

test('all problems of a configuration come at once', () => {
  const options = {
    upstreams: [
      { name: 'a', url: 'iggy://u:p@h:1' },
      { name: 'a', url: 'iggy://u:p@h:1' },
      { name: 'b', url: 'ftp://h' },
      { name: 'c', url: 'edge+wt://t@h?device=d' },
    ],
    routes: [
      { from: 'x', to: 'a:s/t' },
      { from: 's/*', to: 'missing:s/t' },
    ],
  }
  assert.throws(
    () => readSyncOptions(options),
    (error: { code?: string; details?: { problems?: unknown[] } }) => {
      assert.equal(error.code, 'EDGE_CONFIG_INVALID')
      assert.equal(error.details?.problems?.length, 5)
      return true
    },
  )
})
