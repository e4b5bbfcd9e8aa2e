import assert from 'node:assert/strict'
import { createHash, randomBytes, type X509Certificate } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { createIdentity } from '../../../src/quic-edge/engine/tls/identity.ts'
import { loadCertificate } from '../../../src/quic-edge/io/certificate.ts'
import { TlsPair } from '../../support/quic/tls-pair.ts'

test('the certificate that the edge makes for itself proves it to a client of QUIC', async (context) => {
  const directory = await mkdtemp(join(tmpdir(), 'iggy-edge-tls-identity-'))
  context.after(() => rm(directory, { recursive: true }))
  const own = await loadCertificate({ type: 'self-signed', directory }, systemClock)
  const identity = createIdentity(own.certificatePem, own.privateKeyPem)
  const seen: X509Certificate[] = []
  const pair = new TlsPair(
    {
      transportParameters: new Uint8Array(),
      random: randomBytes,
      verify: (certificates) => seen.push(...certificates),
    },
    { identity: () => identity, alpnProtocols: [], transportParameters: new Uint8Array(), random: randomBytes },
  )
  pair.run()
  assert.ok(pair.serverEvents.isDone)
  assert.equal(seen.length, 1)
  const found = createHash('sha256')
    .update(seen[0]?.raw ?? '')
    .digest('hex')
  assert.equal(found, own.sha256)
})
