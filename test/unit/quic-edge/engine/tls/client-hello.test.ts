import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { LEVEL } from '../../../../../src/quic-edge/engine/tls/api.ts'
import { readClientHello } from '../../../../../src/quic-edge/engine/tls/client-hello.ts'
import {
  chooseGroup,
  chooseProtocol,
  chooseScheme,
  chooseSuite,
} from '../../../../../src/quic-edge/engine/tls/negotiation.ts'
import { TlsServer } from '../../../../../src/quic-edge/engine/tls/tls-server.ts'
import { ALERT, QuicError } from '../../../../../src/quic-edge/engine/wire/quic-error.ts'
import { makeIdentity } from '../../../../support/quic/identities.ts'
import { SAMPLE_CRYPTO_FRAME, SAMPLE_HELLO_AT } from '../../../../support/quic/sample-packets.ts'
import { TlsClient } from '../../../../support/quic/tls-client.ts'
import { TlsRecorder } from '../../../../support/quic/tls-pair.ts'
import { SeededRandom } from '../../../../support/seeded-random.ts'

const identity = makeIdentity('ecdsa-p256')
const sample = Uint8Array.fromHex(SAMPLE_CRYPTO_FRAME).subarray(SAMPLE_HELLO_AT)

/** A hello with everything that is looked at, and a hybrid share in front. */
function fullHello(): Uint8Array {
  const events = new TlsRecorder()
  new TlsClient(
    {
      transportParameters: Uint8Array.fromHex('0f0401020304040480100000'),
      random: (size) => new Uint8Array(size).fill(7),
      serverName: 'gateway-7.example',
      alpnProtocols: ['iggy', 'h3'],
      foreignShares: [{ group: 0x11ec, publicBytes: new Uint8Array(64).fill(1) }],
    },
    events,
  )
  return events.sent[0]?.bytes ?? new Uint8Array()
}

/** What a server does with a hello before it spends time on keys. */
function answer(message: Uint8Array): void {
  const hello = readClientHello(message)
  chooseSuite(hello, {})
  chooseGroup(hello, {})
  chooseScheme(hello, identity)
  chooseProtocol(hello, { alpnProtocols: ['iggy'] })
}

/** @returns whether it was taken. Refusals are of TLS or QUIC; anything else is a fault of ours. */
function isTaken(take: () => void): boolean {
  try {
    take()
    return true
  } catch (error) {
    if (error instanceof QuicError) return false
    throw error
  }
}

function mutate(message: Uint8Array, random: SeededRandom): Uint8Array {
  const altered = new Uint8Array(message)
  for (let i = random.below(3); i >= 0; i--) {
    const at = random.below(altered.length)
    const kind = random.below(4)
    if (kind === 0) altered[at] = random.below(256)
    else if (kind === 1) altered[at] = (altered[at] ?? 0) ^ (1 << random.below(8))
    else if (kind === 2) altered[at] = random.chance(0.5) ? 0 : 0xff
    // A part of it once more, somewhere else.
    else altered.copyWithin(at, random.below(altered.length), random.below(altered.length))
  }
  return altered
}

test('the ClientHello of RFC 9001 appendix A.2 reads', () => {
  const hello = readClientHello(sample)
  assert.deepEqual(hello.suites, [0x1301, 0x1302])
  assert.deepEqual(hello.groups, [0x001d, 0x0017, 0x0018])
  assert.deepEqual([...hello.keyShares.keys()], [0x001d])
  assert.deepEqual(hello.protocols, ['alpn'])
  assert.equal(hello.serverName, 'example.com')
  assert.deepEqual(hello.signatureSchemes, [0x0403, 0x0503, 0x0603, 0x0203, 0x0804, 0x0805, 0x0806])
  assert.equal(hello.transportParametersView.length, 50)
})

test('every truncation of a hello is refused as such', () => {
  for (const message of [sample, fullHello()]) {
    for (let size = 4; size < message.length; size++) {
      const cut = message.slice(0, size)
      cut.set([(size - 4) >> 8, size - 4], 2)
      const isExpected = (error: unknown) => {
        if (!(error instanceof QuicError)) return false
        // Without its extensions, that is.
        return error.code === 0x100 + ALERT.decodeError || error.code === 0x100 + ALERT.protocolVersion
      }
      assert.throws(() => readClientHello(cut), isExpected, `${size} bytes`)
    }
  }
})

test('100,000 mutated hellos are taken or refused', () => {
  const random = new SeededRandom(8446)
  const messages = [sample, fullHello()]
  let takenCount = 0
  for (let round = 0; round < 100_000; round++) {
    const altered = mutate(messages[round % messages.length] ?? sample, random)
    if (isTaken(() => answer(altered))) takenCount++
  }
  assert.ok(takenCount > 1000 && takenCount < 90_000, `${takenCount} taken`)
})

test('a server answers or refuses what comes in pieces, altered or not', () => {
  const random = new SeededRandom(9001)
  const message = fullHello()
  let answeredCount = 0
  for (let round = 0; round < 1000; round++) {
    const events = new TlsRecorder()
    const server = new TlsServer(
      { identity: () => identity, alpnProtocols: ['iggy'], transportParameters: new Uint8Array(), random: randomBytes },
      events,
    )
    const altered = round % 10 === 0 ? message : mutate(message, random)
    const whole = Buffer.concat([altered, altered.subarray(0, random.below(3))])
    isTaken(() => {
      for (let at = 0; at < whole.length; ) {
        const size = 1 + random.below(400)
        server.receive(LEVEL.initial, whole.subarray(at, at + size))
        at += size
      }
    })
    if (events.sent.length > 0) answeredCount++
  }
  assert.ok(answeredCount > 50 && answeredCount < 950, `${answeredCount} answered`)
})
