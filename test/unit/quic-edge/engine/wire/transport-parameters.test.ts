import assert from 'node:assert/strict'
import { test } from 'node:test'
import { QuicError, TRANSPORT_ERROR } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import {
  decodeTransportParameters,
  encodeTransportParameters,
  TRANSPORT_PARAMETER_DEFAULTS,
  type TransportParameters,
} from '../../../../../src/quic-edge/engine/wire/transport-parameters.ts'
import { SeededRandom } from '../../../../support/seeded-random.ts'

const bytes = (hex: string) => Uint8Array.fromHex(hex.replaceAll(' ', ''))

const OURS: TransportParameters = {
  originalDestinationId: bytes('8394c8f03e515708'),
  idleTimeoutMs: 30_000,
  statelessResetToken: bytes('000102030405060708090a0b0c0d0e0f'),
  maxDatagramSize: 1452,
  maxData: 1_048_576,
  maxStreamDataBidiLocal: 65_536,
  maxStreamDataBidiRemote: 131_072,
  maxStreamDataUni: 1,
  maxStreamsBidi: 100,
  maxStreamsUni: 3,
  ackDelayExponent: 4,
  maxAckDelayMs: 20,
  disableMigration: true,
  connectionIdLimit: 4,
  initialSourceId: bytes('a1a2a3a4'),
  retrySourceId: bytes(''),
}

/** As RFC 9001 appendix A.2 has them, in its order. */
const SAMPLE =
  '0408ffffffffffffffff 05048000ffff 07048000ffff 08011001048000753009 01100f088394c8f03e515708 06048000ffff'

function assertRefused(hex: string, reason: RegExp, sender: 'client' | 'server' = 'client'): void {
  assert.throws(
    () => decodeTransportParameters(bytes(hex), sender),
    (error) =>
      error instanceof QuicError &&
      error.code === TRANSPORT_ERROR.transportParameterError &&
      reason.test(error.message),
    hex,
  )
}

test('the parameters of the sample client read', () => {
  const found = decodeTransportParameters(bytes(SAMPLE), 'client')
  assert.equal(found.maxData, 2 ** 62)
  assert.equal(found.maxStreamDataBidiLocal, 65_535)
  assert.equal(found.maxStreamsBidi, 16)
  assert.equal(found.idleTimeoutMs, 30_000)
  assert.equal(found.maxStreamsUni, 16)
  assert.deepEqual(found.initialSourceId, bytes('8394c8f03e515708'))
  assert.equal(found.maxAckDelayMs, 25)
})

test('ours have these bytes, and read as they were', () => {
  const expected =
    '00088394c8f03e515708 0210000102030405060708090a0b0c0d0e0f 0f04a1a2a3a4 1000 010480007530 030245ac 0404 80100000' +
    '0504 80010000 0604 80020000 070101 08024064 090103 0a0104 0b0114 0e0104 0c00'
  assert.deepEqual(encodeTransportParameters(OURS), bytes(expected))
  assert.deepEqual(decodeTransportParameters(encodeTransportParameters(OURS), 'server'), OURS)
})

test('what is not sent has its default, and is not sent', () => {
  assert.deepEqual(decodeTransportParameters(bytes(''), 'client'), TRANSPORT_PARAMETER_DEFAULTS)
  assert.equal(encodeTransportParameters(TRANSPORT_PARAMETER_DEFAULTS).length, 0)
})

test('parameters that are not known are skipped, of any size', () => {
  const found = decodeTransportParameters(bytes('1b00 405503aabbcc 2001ff ffffffffffffffff0100 040105'), 'client')
  assert.equal(found.maxData, 5)
})

test('what breaks a rule is refused', () => {
  assertRefused('040105 040105', /4 twice/)
  assertRefused('1b00 1b00', /27 twice/)
  assertRefused('0401', /cut short/)
  assertRefused('04', /cut short/)
  assertRefused('040140', /cut short/)
  assertRefused('04020500', /after its value/)
  assertRefused('0400', /cut short/)
  assertRefused('030244af', /maxDatagramSize of 1199/)
  assertRefused('0a0115', /ackDelayExponent of 21/)
  assertRefused('0b04 80004000', /maxAckDelayMs of 16384/)
  assertRefused('0e0101', /connectionIdLimit of 1/)
  assertRefused('0808 d000000000001000', /maxStreamsBidi/)
  assertRefused('0908 ffffffffffffffff', /maxStreamsUni/)
  assertRefused('0c0100', /disableMigration/)
  assertRefused(`0f15${'00'.repeat(21)}`, /initialSourceId of 21/)
  assertRefused(`020f${'00'.repeat(15)}`, /statelessResetToken of 15/, 'server')
})

test('what only a server may send is refused from a client', () => {
  for (const hex of ['0000', `0210${'00'.repeat(16)}`, `0d29${'00'.repeat(41)}`, '1000']) {
    assertRefused(hex, /from a client/)
    assert.doesNotThrow(() => decodeTransportParameters(bytes(hex), 'server'))
  }
})

test('values do not alias the message they came in', () => {
  const message = Buffer.from(bytes('0f04a1a2a3a4'))
  const { initialSourceId } = decodeTransportParameters(message, 'client')
  message.fill(0)
  assert.deepEqual(initialSourceId, bytes('a1a2a3a4'))
})

test('every truncation and 20,000 mutations are read or refused as parameters', () => {
  const whole = encodeTransportParameters(OURS)
  const attempt = (altered: Uint8Array) => {
    try {
      decodeTransportParameters(altered, 'server')
    } catch (error) {
      assert.ok(error instanceof QuicError && error.code === TRANSPORT_ERROR.transportParameterError, String(error))
    }
  }
  for (let size = 0; size < whole.length; size++) attempt(whole.subarray(0, size))
  const random = new SeededRandom(9001)
  for (let round = 0; round < 20_000; round++) {
    const altered = whole.slice()
    for (let i = random.below(4); i >= 0; i--) altered[random.below(altered.length)] = random.below(256)
    attempt(altered)
  }
})
