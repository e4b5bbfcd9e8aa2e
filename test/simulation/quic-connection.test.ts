/** Client and server connection over links that lose up to 30 %, reorder, repeat and damage, with address changes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QuicWorld } from '../support/quic/quic-world.ts'

const FROM = Number(process.env.QUIC_SIM_FROM ?? 1)
const SEEDS = Number(process.env.QUIC_SIM_SEEDS ?? 60)
/** Every so many-th seed is run twice. */
const REPEATED = 10

test(`${SEEDS} worlds keep every byte, every bound and nothing at the end`, () => {
  const faults: string[] = []
  for (let seed = FROM; seed < FROM + SEEDS; seed++) {
    const { fault, summary, trace } = new QuicWorld(seed).run()
    if (fault !== undefined) faults.push(`seed ${seed}: ${fault}; ${summary}`)
    else if (seed % REPEATED === 0) assert.equal(new QuicWorld(seed).run().trace, trace, `seed ${seed} repeats itself`)
  }
  assert.deepEqual(faults, [])
})
