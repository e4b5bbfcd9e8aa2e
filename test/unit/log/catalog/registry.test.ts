import assert from 'node:assert/strict'
import { test } from 'node:test'
import { IdPool } from '../../../../src/log/catalog/id-pool.ts'
import { numberOf } from '../../../../src/log/catalog/layout.ts'
import { Registry, StreamEntry } from '../../../../src/log/catalog/registry.ts'

test('the lowest free id is found after any order of taking and freeing', () => {
  const used = new Set<number>()
  const pool = new IdPool(used)
  let seed = 7
  for (let step = 0; step < 2000; step++) {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff
    const [some] = [...used].slice(seed % Math.max(1, used.size))
    if (seed % 3 > 0 || some === undefined) {
      const id = pool.lowest()
      let expected = 0
      while (used.has(expected)) expected++
      assert.equal(id, expected)
      used.add(id)
    } else {
      used.delete(some)
      pool.free(some)
    }
  }
})

test('streams are found by id and by name and listed by id, whatever the order they came in', () => {
  const registry = new Registry()
  for (const id of [3, 0, 2]) registry.addStream(new StreamEntry(id, `s${id}`, 0n))
  const { streams } = registry
  assert.deepEqual([...streams.keys()], [0, 2, 3])
  registry.addStream(new StreamEntry(registry.lowestStreamId(), 's1', 0n))
  assert.deepEqual([...streams.keys()], [0, 1, 2, 3], 'a map that was handed out stays the same one')
  assert.equal(registry.stream('s2')?.id, 2)
  assert.equal(registry.stream(2)?.name, 's2')
  assert.equal(registry.stream('2'), undefined, 'a name of digits is a name')
})

test('a renamed stream is found by its new name only', () => {
  const registry = new Registry()
  const stream = new StreamEntry(0, 'old', 0n)
  registry.addStream(stream)
  registry.renameStream(stream, 'new')
  assert.equal(registry.stream('old'), undefined)
  assert.equal(registry.stream('new'), stream)
  registry.removeStream(stream)
  assert.equal(registry.stream('new'), undefined)
  assert.equal(registry.lowestStreamId(), 0)
})

test('only plain decimal numbers name folders of ours', () => {
  assert.deepEqual(['0', '7', '4294967295'].map(numberOf), [0, 7, 4_294_967_295])
  for (const name of ['', '007', '-1', '1.tmp', '4294967296', '1e3', ' 1', 'lost+found'])
    assert.equal(numberOf(name), null, name)
})
