import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseLoad, parseMemory } from '../../../../src/runtime/demo/vitals.ts'

describe('vitals', () => {
  it('reads the three load averages', () => {
    assert.deepEqual(
      parseLoad('0.52 0.58 0.59 1/467 12345\n').map(({ value }) => value),
      [0.52, 0.58, 0.59],
    )
  })

  it('reads memory in bytes, whatever the order of the lines', () => {
    const vitals = parseMemory('MemTotal:       16000 kB\nMemFree:   1 kB\nMemAvailable:    8000 kB\n')
    assert.deepEqual(
      vitals.map(({ name, value }) => [name, value]),
      [
        ['memory_available', 8_192_000],
        ['memory_total', 16_384_000],
      ],
    )
  })

  it('answers zero for a field that a kernel does not have', () => {
    assert.equal(parseMemory('MemTotal: 1 kB\n')[0]?.value, 0)
  })
})
