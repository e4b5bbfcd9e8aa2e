/** Single classic requests at the edges of the protocol, answered as server 0.8.0 answered the same frames made by hand. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CODE } from '../../../src/sdk/wire/codes.ts'
import { ClassicClient } from '../../support/protocol-clients.ts'
import { startProtocolServer, type TestServer } from '../../support/protocol-server.ts'

let running: TestServer

before(async () => {
  running = await startProtocolServer()
})
after(() => running[Symbol.asyncDispose]())

const port = () => running.listener.port
const name = (text: string) => Buffer.concat([Buffer.of(text.length), Buffer.from(text)]).toString('hex')

describe('classic, before login', () => {
  const CASES: readonly (readonly [string, number, string])[] = [
    ['ping', 1, 'ok'],
    ['get_streams', 201, 'status 40'],
    ['get_cluster_metadata', 12, 'status 40'],
    ['an unknown code', 9999, 'status 3'],
    ['describe_options, which is vsr', 13, 'status 3'],
    ['login_register, which is vsr', 40, 'status 3'],
    ['snapshot', 11, 'status 40'],
    ['logout', 39, 'status 40'],
  ]
  for (const [title, code, expected] of CASES) {
    test(`${title} is answered ${expected}`, async () => {
      using client = await ClassicClient.connect(port(), null)
      await client.askBytes(1, '')
      assert.equal(await client.askBytes(code, ''), expected)
      assert.equal(await client.askBytes(1, ''), 'ok')
    })
  }

  test('a length below 4 is answered 3 and the connection stays', async () => {
    using client = await ClassicClient.connect(port(), null)
    await client.askBytes(1, '')
    for (const hex of ['0000000000000000', '0300000001000000']) {
      client.raw.write(Buffer.from(hex, 'hex'))
      assert.equal((await client.raw.readClassic()).status, 3)
    }
    assert.equal(await client.askBytes(1, ''), 'ok')
  })
})

describe('classic logins', () => {
  const text = (value: string) => Buffer.concat([Buffer.of(value.length), Buffer.from(value)]).toString('hex')
  const CASES: readonly (readonly [string, string, string])[] = [
    ['truncated', '0469676779', 'status 3'],
    ['an empty name', `00${text('iggy')}0000000000000000`, 'status 4'],
    ['a name of two', `${text('ab')}${text('iggy')}0000000000000000`, 'status 43'],
    ['a password of two', `${text('iggy')}${text('ab')}0000000000000000`, 'status 44'],
    ['a password of 101', `${text('iggy')}${text('a'.repeat(101))}0000000000000000`, 'status 44'],
    ['a wrong password', `${text('iggy')}${text('wrong')}0000000000000000`, 'status 42'],
    ['an unknown user', `${text('nobody')}${text('iggy')}0000000000000000`, 'status 42'],
    ['without version and context', `${text('iggy')}${text('iggy')}`, 'status 3'],
  ]
  for (const [title, payload, expected] of CASES) {
    test(`${title}: ${expected}`, async () => {
      using client = await ClassicClient.connect(port(), null)
      assert.equal(await client.askBytes(38, payload), expected)
      assert.equal(await client.askBytes(1, ''), 'ok')
    })
  }

  test('a second one takes the place of the first, a logout leaves the connection', async () => {
    using client = await ClassicClient.connect(port())
    assert.equal(
      (await client.ask(CODE.loginUser, { username: 'iggy', password: 'iggy', version: '', context: '' })).outcome,
      'ok',
    )
    assert.equal((await client.ask(CODE.logoutUser, null)).outcome, 'ok')
    assert.equal((await client.ask(CODE.getMe, null)).outcome, 'status 40')
    assert.equal((await client.ask(CODE.ping, null)).outcome, 'ok')
  })

  test('with a token that is unknown 20, that has expired 54', async () => {
    using client = await ClassicClient.connect(port())
    const created = await client.ask(CODE.createPersonalAccessToken, { name: 'brief', expiryUs: 1n })
    const token = created.body?.token ?? ''
    assert.equal((await client.ask(CODE.loginWithPersonalAccessToken, { token })).outcome, 'status 54')
    assert.equal((await client.ask(CODE.loginWithPersonalAccessToken, { token: 'nonsense' })).outcome, 'status 20')
    await client.ask(CODE.deletePersonalAccessToken, { name: 'brief' })
  })
})

describe('classic commands with bad bytes', () => {
  const CASES: readonly (readonly [string, number, string, string])[] = [
    ['a stream name with bytes after it', 202, `${name('trailing')}aabbcc`, 'ok'],
    ['an empty stream name', 202, '00', 'status 4'],
    ['a stream name that is not UTF-8', 202, '02c328', 'status 3'],
    ['an identifier of kind 9', 200, '090400000000', 'status 3'],
    ['a numeric identifier of 3 bytes', 200, '0103000000', 'status 4'],
    ['a missing stream', 203, '010463000000', 'status 1009'],
    ['a missing stream, read', 200, '010463000000', 'ok'],
    ['client 0', 21, '00000000', 'status 101'],
    ['an unknown client', 21, '39300000', 'ok'],
    ['a snapshot of compression 9', 11, '090164', 'status 3'],
  ]
  for (const [title, code, payload, expected] of CASES) {
    test(`${title}: ${expected}`, async () => {
      using client = await ClassicClient.connect(port())
      assert.equal(await client.askBytes(code, payload), expected)
      assert.equal(await client.askBytes(1, ''), 'ok')
    })
  }

  test('topics of too many partitions, unknown compression or small size are refused', async () => {
    using client = await ClassicClient.connect(port())
    await client.ask(CODE.createStream, { name: 'probe', options: [] })
    const topic = (partitions: string, compression: string, size: string) =>
      client.askBytes(
        302,
        `0205${Buffer.from('probe').toString('hex')}${partitions}${compression}0000000000000000${size}01${name('t')}`,
      )
    assert.equal(await topic('e9030000', '01', '0000000000000000'), 'status 2015')
    assert.equal(await topic('01000000', '09', '0000000000000000'), 'status 3')
    assert.equal(await topic('01000000', '01', 'e803000000000000'), 'status 1019')
    assert.equal(await topic('00000000', '01', '0000000000000000'), 'ok')
    assert.equal(await topic('01000000', '01', '0000000000000000'), 'status 2013')
  })
})
