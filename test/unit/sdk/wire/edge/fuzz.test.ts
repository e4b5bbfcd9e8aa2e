/** Frames that no device should send: each decodes or is refused by name; at most its own bytes are said of it. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { aboutFrame, decodeFrame } from '../../../../../src/sdk/wire/edge/index.ts'
import { countDecoded } from '../../../../support/mutated-bytes.ts'

/** A million in all, of several seeds, have passed; one run is a part of them. */
const ROUNDS = 150_000
const file = new URL('../../../../fixtures/edge/vectors.json', import.meta.url)
const { frames, refuse } = JSON.parse(readFileSync(file, 'utf8')) as Record<
  string,
  { hex: string; datagram?: boolean }[]
>

/** Frames of streams have a head of one byte in all vectors. */
const bare = ({ hex, datagram }: { hex: string; datagram?: boolean }) =>
  Buffer.from(hex, 'hex').subarray(datagram === true ? 0 : 1)

test('mutated frames decode or are refused with an error of ours', () => {
  const samples = [...(frames ?? []), ...(refuse ?? [])].map(bare)
  const decoded = countDecoded({ samples, rounds: ROUNDS, seed: Number(process.env.FUZZ_SEED ?? 5) }, (bytes) => {
    const { of, ref } = aboutFrame(bytes)
    assert.ok(Number.isSafeInteger(of) && (ref === null || Number.isSafeInteger(ref)))
    return decodeFrame(bytes)
  })
  assert.ok(decoded > ROUNDS / 100, `${decoded} decoded: the mutations would be too wild to reach anything`)
})
