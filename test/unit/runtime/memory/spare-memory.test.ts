import assert from 'node:assert/strict'
import { test } from 'node:test'
import { returnSpareMemory } from '../../../../src/runtime/memory/spare-memory.ts'

test('memory is returned after many pages came, and not again while nothing happens', () => {
  let pageCount = 1000
  let trimCount = 0
  let look = () => {}
  let isEnded = false
  const end = returnSpareMemory({
    pageCount: () => pageCount,
    trim: () => {
      trimCount++
    },
    every(_milliseconds, task) {
      look = task
      return () => {
        isEnded = true
      }
    },
  })
  look()
  assert.equal(trimCount, 0)
  pageCount += 255
  look()
  assert.equal(trimCount, 0)
  pageCount += 1
  look()
  assert.equal(trimCount, 1)
  look()
  assert.equal(trimCount, 1)
  end()
  assert.equal(isEnded, true)
})
