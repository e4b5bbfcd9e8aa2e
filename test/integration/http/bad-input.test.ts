import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { encodeRecords } from '../../../src/sdk/wire/messages.ts'
import { eventually } from '../../support/eventually.ts'
import { startTestHttp, type TestHttp } from '../../support/http-server.ts'

const BASIC = 'authorization: Basic aWdneTppZ2d5\r\n'

/** Sends bytes as they are. @returns everything the server answered until it closed, or until `until` was seen. */
function raw(server: TestHttp, parts: readonly (string | Uint8Array)[], until?: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(server.http.port, '127.0.0.1')
    let answer = ''
    const timeout = setTimeout(() => reject(new Error(`no end within 8 s, so far: ${answer.slice(0, 200)}`)), 8000)
    const done = (): void => {
      clearTimeout(timeout)
      socket.destroy()
      resolve(answer)
    }
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString('latin1')
      if (until !== undefined && answer.includes(until)) done()
    })
    socket.on('close', done)
    socket.on('error', () => undefined)
    for (const part of parts) socket.write(part)
  })
}

async function isAlive(server: TestHttp): Promise<boolean> {
  return (await (await fetch(`${server.url}/ping`)).text()) === 'pong'
}

test('bytes that are no HTTP get a short 400 that repeats none of them, and the server goes on', async () => {
  await using server = await startTestHttp()
  let seed = 7
  const noise = Uint8Array.from({ length: 4096 }, () => {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff
    return seed >> 16
  })
  for (const garbage of [
    noise,
    'SECRET /streams\r\n\r\n',
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    'GET / HTTP/9.9\r\n\r\n',
    '\r\n\0\r\n',
  ]) {
    const answer = await raw(server, [garbage])
    if (answer !== '') assert.match(answer, /^HTTP\/1\.1 (400|505) /)
    assert.ok(!answer.includes('SECRET'))
  }
  assert.ok(await isAlive(server))
})

test('a head that never ends is cut off, and so is a body', async () => {
  await using server = await startTestHttp({ settings: { http: { header_timeout: 200, request_timeout: 200 } } })
  assert.match(await raw(server, ['GET /ping HTTP/1.1\r\nhost: x\r\n']), /^HTTP\/1\.1 408 /)
  const half = `POST /streams HTTP/1.1\r\nhost: x\r\n${BASIC}content-type: application/json\r\ncontent-length: 100\r\n\r\n{"na`
  const answer = await raw(server, [half])
  assert.ok(answer === '' || answer.startsWith('HTTP/1.1 408'), answer)
  assert.ok(await isAlive(server))
})

test('too long a head is refused', async () => {
  await using server = await startTestHttp()
  assert.match(
    await raw(server, [`GET /ping HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`]),
    /^HTTP\/1\.1 431 /,
  )
  assert.ok(await isAlive(server))
})

test('an oversized body is refused by its length before it is sent, and while it comes when it announces none', async () => {
  await using server = await startTestHttp({ settings: { http: { max_request_size: 10_000 } } })
  const head = `POST /streams HTTP/1.1\r\nhost: x\r\n${BASIC}content-type: application/json\r\n`
  const announced = await raw(server, [`${head}content-length: 10001\r\n\r\n`])
  assert.match(announced, /^HTTP\/1\.1 413 /)
  assert.match(announced, /connection: close/i)
  const chunk = `1000\r\n${'x'.repeat(4096)}\r\n`
  assert.match(
    await raw(server, [`${head}transfer-encoding: chunked\r\n\r\n`, chunk, chunk, chunk]),
    /^HTTP\/1\.1 413 /,
  )
  const huge = await raw(server, [`${head}content-length: 99999999999999999999\r\n\r\n`])
  assert.match(huge, /^HTTP\/1\.1 4\d\d /)
  assert.ok(await isAlive(server))
})

test('bodies held at the same time are bounded: one more is asked to come again', async () => {
  await using server = await startTestHttp({ settings: { http: { max_request_size: 8000, max_held_bodies: 10_000 } } })
  const head = `POST /streams HTTP/1.1\r\nhost: x\r\n${BASIC}content-type: application/json\r\ncontent-length: 7000\r\n\r\n`
  const held = connect(server.http.port, '127.0.0.1')
  const heldAnswer = new Promise<string>((resolve) => held.once('data', (bytes) => resolve(bytes.toString())))
  held.write(head + 'x'.repeat(6900))
  let second = ''
  // The first body may be under way still: it counts once the server has read it.
  for (let attempt = 0; attempt < 50 && !second.startsWith('HTTP/1.1 503'); attempt++)
    second = await raw(server, [head, 'x'.repeat(7000)], '\r\n\r\n')
  assert.match(second, /^HTTP\/1\.1 503 /)
  assert.match(second, /retry-after: 1/)
  held.write('x'.repeat(100))
  assert.match(await heldAnswer, /^HTTP\/1\.1 400 /)
  held.destroy()
})

test('what anybody may send without a token is small', async () => {
  await using server = await startTestHttp()
  const login = async (username: string): Promise<readonly number[]> => {
    const text = JSON.stringify({ username, password: 'iggy' })
    const ask = { method: 'POST', headers: { 'content-type': 'application/json' } }
    const whole = await fetch(`${server.url}/users/login`, { ...ask, body: text })
    // Of this one nobody knows the length before its end.
    const parts = { ...ask, body: new Blob([text]).stream(), duplex: 'half' } as RequestInit
    const inParts = await fetch(`${server.url}/users/login`, parts)
    return [whole.status, inParts.status]
  }
  assert.deepEqual(await login('iggy'), [200, 200])
  assert.deepEqual(await login('x'.repeat(16 * 1024)), [413, 413])
})

test('a body of more values than fit into memory as objects is refused before it is parsed', async () => {
  await using server = await startTestHttp()
  await server.broker.createStream({ dialect: 'http', userId: 0, client: null }, 's')
  const topic = { name: 't', partitionCount: 1, options: {} }
  await server.broker.createTopic({ dialect: 'http', userId: 0, client: null }, 's', topic)
  const post = async (body: string): Promise<readonly [number, string]> => {
    const headers = { 'content-type': 'application/json', authorization: 'Basic aWdneTppZ2d5' }
    const path = `${server.url}/streams/s/topics/t/messages`
    const answer = await fetch(path, { method: 'POST', headers, body })
    return [answer.status, await answer.text()]
  }
  const many = (value: string, count: number) => `[${Array.from({ length: count }, () => value).join(',')}]`
  assert.equal((await post('['.repeat(90_000) + ']'.repeat(90_000)))[0], 422)
  for (const value of ['{}', '[]', '1', '"a"', '"\\\\"', '"\\\\\\""', '{"a":{}}']) {
    const [status, text] = await post(many(value, 150_000))
    assert.deepEqual([status, /more than 100000 values/.test(text)], [413, true], value)
  }
  // Commas and brackets of texts are none, whatever stands before them.
  const [status, text] = await post(JSON.stringify({ a: `\\"${',[{'.repeat(100_000)}` }))
  assert.deepEqual([status, /unknown field/.test(text)], [422, true])
  const send = (count: number) =>
    post(`{"partitioning":{"kind":"balanced","value":""},"messages":${many('{"payload":"eA=="}', count)}}`)
  assert.deepEqual((await send(16_385))[0], 413)
  assert.deepEqual((await send(16_384))[0], 201)
})

test('JSON of any shape on every route that takes a body is refused as Iggy refuses it, never with 500', async () => {
  await using server = await startTestHttp()
  const headers = { authorization: 'Basic aWdneTppZ2d5', 'content-type': 'application/json' }
  const routes: readonly (readonly [string, string])[] = [
    ['POST', '/users/login'],
    ['POST', '/users/refresh-token'],
    ['POST', '/personal-access-tokens/login'],
    ['POST', '/personal-access-tokens'],
    ['POST', '/users'],
    ['PUT', '/users/1/password'],
    ['POST', '/streams'],
    ['PUT', '/streams/0'],
    ['POST', '/streams/0/topics'],
    ['PUT', '/streams/0/topics/0'],
    ['POST', '/streams/0/topics/0/partitions'],
    ['POST', '/streams/0/topics/0/messages'],
    ['PUT', '/streams/0/topics/0/consumer-offsets'],
    ['POST', '/streams/0/topics/0/consumer-groups'],
    ['POST', '/snapshot'],
  ]
  const deep = '['.repeat(8000) + ']'.repeat(8000)
  const bodies: readonly (readonly [string | Uint8Array<ArrayBuffer>, number])[] = [
    ['', 400],
    ['{', 400],
    ['nonsense', 400],
    ['[]', 422],
    ['7', 422],
    ['null', 422],
    ['"text"', 422],
    [deep, 422],
    [`{"n":18446744073709551615,"x":${deep}`, 400],
    [Uint8Array.from([0x22, 0xff, 0xfe, 0x22]), 400],
  ]
  for (const [method, path] of routes) {
    for (const [body, status] of bodies) {
      const response = await fetch(server.url + path, { method, headers, body })
      assert.equal(response.status, status, `${method} ${path} with ${String(body).slice(0, 20)}`)
      assert.equal(response.headers.get('content-type'), 'text/plain; charset=utf-8')
    }
    const typeless = await fetch(server.url + path, {
      method,
      headers: { ...headers, 'content-type': 'text/plain' },
      body: '{}',
    })
    assert.equal(typeless.status, 415)
  }
  assert.ok(await isAlive(server))
})

test('mutated requests to send never bring the server down', async () => {
  await using server = await startTestHttp()
  const headers = { authorization: 'Basic aWdneTppZ2d5', 'content-type': 'application/json' }
  await fetch(`${server.url}/streams`, { method: 'POST', headers, body: '{"name":"s"}' })
  await fetch(`${server.url}/streams/s/topics`, { method: 'POST', headers, body: '{"name":"t","partitions_count":1}' })
  const good =
    '{"partitioning":{"kind":"messages_key","value":"YQ=="},"messages":[{"id":"7","payload":"YQ==","user_headers":[{"key":{"kind":"string","value":"aw=="},"value":{"kind":"uint8","value":"BQ=="}}]}]}'
  let seed = 11
  const random = (below: number): number => {
    seed = (seed * 1103515245 + 12345) & 0x7fffffff
    return (seed >> 8) % below
  }
  const statuses = new Set<number>()
  for (let round = 0; round < 400; round++) {
    const at = random(good.length)
    const body = good.slice(0, at) + '"{}[],:0aZ=\\'.charAt(random(12)) + good.slice(at + random(3))
    const response = await fetch(`${server.url}/streams/s/topics/t/messages`, { method: 'POST', headers, body })
    await response.arrayBuffer()
    statuses.add(response.status)
  }
  for (const status of statuses) assert.ok([201, 400, 422].includes(status), `status ${status}`)
  assert.ok(await isAlive(server))
})

/** What a poll of topic `t` of stream `s` answers with then is larger than sockets take at once. */
async function storeLargeMessage({ broker }: TestHttp): Promise<void> {
  const root = { dialect: 'http', userId: 0, client: null } as const
  await broker.createStream(root, 's')
  await broker.createTopic(root, 's', { name: 't', partitionCount: 1, options: {} })
  const batch = encodeRecords([{ payload: new Uint8Array(8_000_000), originUs: 5n }])
  broker.send(root, 's', 't', { kind: 'balanced' }, batch, { settled() {} })
}

test('what a peer does not read of its answer is counted, until it goes away', async (context) => {
  await using server = await startTestHttp()
  await storeLargeMessage(server)
  let leftBytes = 0
  context.mock.method(server.broker, 'answersLeft', (changeBytes: number) => {
    leftBytes += changeBytes
  })
  const socket = connect(server.http.port, '127.0.0.1')
  socket.pause()
  socket.write(`GET /streams/s/topics/t/messages?kind=first HTTP/1.1\r\nhost: x\r\n${BASIC}\r\n`)
  await eventually(() => leftBytes > 8_000_000, 'the answer waits')
  socket.destroy()
  await eventually(() => leftBytes === 0, 'nothing waits any more')
})

test('requests sent in one piece are carried out one after another, each when the answer before it was taken', async (context) => {
  await using server = await startTestHttp()
  await storeLargeMessage(server)
  const { mock } = context.mock.method(server.broker, 'poll')
  const socket = connect(server.http.port, '127.0.0.1')
  socket.pause()
  const poll = `GET /streams/s/topics/t/messages?kind=first HTTP/1.1\r\nhost: x\r\n${BASIC}`
  socket.write(`${`${poll}\r\n`.repeat(4)}${poll}connection: close\r\n\r\n`)
  await eventually(() => mock.callCount() > 0, 'a poll')
  assert.equal(await isAlive(server), true)
  assert.equal(mock.callCount(), 1)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.resume()
  await closed
  assert.equal(mock.callCount(), 5)
  assert.ok(socket.bytesRead > 5 * 8_000_000, `${socket.bytesRead} bytes`)
})

test('connections are bounded, and a pipelined pair is answered in order', async () => {
  await using server = await startTestHttp({ settings: { http: { max_connections: 2 } } })
  const open = [1, 2].map(() => connect(server.http.port, '127.0.0.1'))
  await Promise.all(open.map((socket) => new Promise((resolve) => socket.once('connect', resolve))))
  assert.equal(await raw(server, ['GET /ping HTTP/1.1\r\nhost: x\r\n\r\n']), '')
  const closed = Promise.all(open.map((socket) => new Promise((resolve) => socket.once('close', resolve))))
  for (const socket of open) socket.destroy()
  await closed
  let answer = ''
  for (let attempt = 0; attempt < 100 && answer === ''; attempt++)
    answer = await raw(server, [
      'GET /ping HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
    ])
  assert.ok(answer.indexOf('pong') > 0 && answer.indexOf('Iggy API') > answer.indexOf('pong'))
})
