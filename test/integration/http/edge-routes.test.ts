import assert from 'node:assert/strict'
import { test } from 'node:test'
import { METRICS } from '../../../src/runtime/observe/metrics.ts'
import { startTestHttp, type TestHttp } from '../../support/http-server.ts'

const BASIC = 'Basic aWdneTppZ2d5'

async function call(server: TestHttp, method: string, path: string, body?: object): Promise<Response> {
  const headers = { authorization: BASIC, 'content-type': 'application/json' }
  return await fetch(server.url + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

async function publish(server: TestHttp, partition: number, ...payloads: readonly string[]): Promise<void> {
  const value = Buffer.from([partition, 0, 0, 0]).toString('base64')
  const messages = payloads.map((payload) => ({ payload: Buffer.from(payload).toString('base64') }))
  const sent = await call(server, 'POST', '/streams/s/topics/t/messages', {
    partitioning: { kind: 'partition_id', value },
    messages,
  })
  assert.equal(sent.status, 201)
}

async function startWithTopic(): Promise<TestHttp> {
  const server = await startTestHttp()
  await call(server, 'POST', '/streams', { name: 's' })
  await call(server, 'POST', '/streams/s/topics', {
    name: 't',
    partitions_count: 2,
    options: { durability: 'buffered' },
  })
  return server
}

test('live answers while the process does; ready says 503 with state, cause and what to do', async () => {
  await using server = await startTestHttp()
  assert.deepEqual(await (await fetch(`${server.url}/health/live`)).json(), { status: 'live' })
  assert.equal((await fetch(`${server.url}/health/ready`)).status, 200)

  const log = {
    name: 'log',
    kind: 'log',
    state: 'failed',
    cause: 'no space left on device',
    action: 'Free space.',
    isEssential: true,
    forUs: 7e6,
  } as const
  const sync = { ...log, name: 'sync central', kind: 'sync', isEssential: false } as const
  server.health = { status: 'not-ready', checks: [log, sync] }
  const ready = await fetch(`${server.url}/health/ready`)
  assert.equal(ready.status, 503)
  assert.deepEqual(await ready.json(), {
    status: 'not-ready',
    checks: [{ name: 'log', state: 'failed', cause: 'no space left on device', action: 'Free space.' }],
  })
  assert.equal((await fetch(`${server.url}/health/live`)).status, 200)

  server.health = { status: 'degraded', checks: [sync] }
  assert.equal((await fetch(`${server.url}/health/ready`)).status, 200)
  const details = (await (await fetch(`${server.url}/health`)).json()) as { checks: { for_seconds: number }[] }
  assert.equal(details.checks[0]?.for_seconds, 7)
})

test('before health was first looked at, ready answers 503', async () => {
  await using server = await startTestHttp()
  server.health = { status: 'not-ready', checks: [] }
  assert.equal((await fetch(`${server.url}/health/ready`)).status, 503)
})

test('metrics carry every declared name that has a value, and follow what happens', async () => {
  await using server = await startWithTopic()
  await publish(server, 0, 'a', 'b', 'c')
  server.sync = [
    {
      route: 's/* to central',
      upstream: 'central',
      address: 'central:8090',
      state: 'waiting',
      cause: 'refused',
      action: 'Check address, user and network of the upstream.',
      lagMessages: 3,
      confirmedMessages: 4,
      gapMessages: 6,
      unreadableMessages: 0,
      deadLetterMessages: 0,
      resentMessages: 0,
      today: null,
      failureCount: 5,
      nextTryAtUs: null,
      lastConfirmedAtUs: null,
    },
  ]
  server.health = {
    status: 'ready',
    checks: [{ name: 'log', kind: 'log', state: 'ok', cause: '', action: '', isEssential: true, forUs: 1 }],
  }
  server.quicTraffic = {
    openConnections: 1,
    acceptedConnections: 2,
    refusedConnections: { limit: 3, handshakes: 4, token: 5, stopping: 6 },
    failedHandshakes: 7,
    retries: 8,
    receivedPackets: 9,
    sentPackets: 10,
    lostPackets: 11,
    strayDatagrams: 12,
    unsentDatagrams: 13,
  }
  const losses = { refused: 3, 'skipped-overflow': 0, 'skipped-expired': 0, 'skipped-damaged': 0, 'lost-by-edge': 0 }
  const lostReadings = { ...losses, 'topic-full': 4, 'datagram-dropped': 0, 'message-too-large': 0 }
  server.deviceTraffic = { connectedCount: 2, lostReadings }
  const response = await fetch(`${server.url}/metrics`, { headers: { accept: 'application/openmetrics-text' } })
  assert.match(response.headers.get('content-type') ?? '', /^application\/openmetrics-text/)
  const text = await response.text()
  for (const { name, type } of Object.values(METRICS)) assert.ok(text.includes(`# TYPE ${name} ${type}\n`), name)
  assert.match(text, /^messages 3$/m)
  assert.match(text, /^edge_sync_lag_messages\{route="s\/\* to central"\} 3$/m)
  assert.match(text, /^edge_quic_refused_connections_total\{reason="token"\} 5$/m)
  assert.match(text, /^edge_quic_dropped_datagrams_total\{reason="unsent"\} 13$/m)
  assert.match(text, /^edge_devices 2$/m)
  assert.match(text, /^edge_device_lost_readings_total\{reason="topic-full"\} 4$/m)
  server.quicTraffic = null
  assert.doesNotMatch(await (await fetch(`${server.url}/metrics`)).text(), /edge_quic/, 'left out while it is off')
  assert.match(text, /^edge_sync_gap_messages_total\{route="s\/\* to central"\} 6$/m)
  assert.match(text, /^edge_check_ok\{check="log"\} 1$/m)
  assert.match(text, /^edge_log_writable 1$/m)
})

test('the overview shows topics with promise, offsets and lags', async () => {
  await using server = await startWithTopic()
  await call(server, 'POST', '/streams/s/topics/t/consumer-groups', { name: 'g' })
  await publish(server, 1, 'a', 'b', 'c')
  await call(
    server,
    'GET',
    '/streams/s/topics/t/messages?consumer_group=g&partition_id=1&kind=first&count=2&auto_commit=true',
  )
  server.syncLags = { lagOf: (...path) => (path.join('/') === 's/t/1' ? 2n : null) }

  const overview = (await (await call(server, 'GET', '/edge/overview')).json()) as {
    topics: {
      stream: string
      topic: string
      promise: string
      messages: number
      appended: number
      sync_lag: number
      groups: object[]
      partitions: object[]
    }[]
    disk: { is_writable: boolean }
    findings: object[]
  }
  const [topic] = overview.topics
  assert.ok(topic)
  const { stream, topic: name, promise, messages, appended, sync_lag, groups } = topic
  assert.deepEqual(
    { stream, name, promise, messages, appended, sync_lag, groups },
    {
      stream: 's',
      name: 't',
      promise: 'buffered',
      messages: 3,
      appended: 3,
      sync_lag: 2,
      groups: [{ name: 'g', lag: 1 }],
    },
  )
  assert.equal(topic.partitions.length, 2)
  assert.equal(overview.disk.is_writable, true)
})

test('the newest messages of all partitions come newest first, decoded', async () => {
  await using server = await startWithTopic()
  let nowUs = 1_795_968_000_000_000n
  server.log.nowUs = () => (nowUs += 1_000_000n)
  await publish(server, 0, 'plain text')
  await publish(server, 1, '[{"n":"t","u":"Cel","v":21.5}]')
  await publish(server, 0, '{"a":1}', '\u0000\u0001')
  const newest = (await (await call(server, 'GET', '/edge/topics/s/t/newest?count=3')).json()) as {
    messages: { partition_id: number; offset: number; reading: { format: string; readings?: object[] } }[]
  }
  const seen = newest.messages.map(({ partition_id, offset, reading }) => [partition_id, offset, reading.format])
  assert.deepEqual(seen, [
    [0, 2, 'hex'],
    [0, 1, 'json'],
    [1, 0, 'senml+json'],
  ])
  assert.deepEqual(newest.messages[2]?.reading.readings, [{ name: 't', value: 21.5, unit: 'Cel', time: null }])
  assert.equal((await call(server, 'GET', '/edge/topics/s/absent/newest')).status, 404)
})

test('browsers get the page, with a strict policy and without anything from elsewhere; others get the banner', async () => {
  await using server = await startTestHttp()
  const asBrowser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' }
  const page = await fetch(`${server.url}/`, { headers: asBrowser })
  assert.equal(page.headers.get('content-type'), 'text/html; charset=utf-8')
  const policy = page.headers.get('content-security-policy') ?? ''
  assert.match(policy, /default-src 'none'/)
  assert.ok(!policy.includes('unsafe'))
  const html = await page.text()
  assert.ok(!/\bstyle=|\bon\w+=|<script>|https?:/.test(html))
  const files = [...html.matchAll(/(?:href|src)="(\/[^"]+)"/g)].map(([, path]) => String(path))
  assert.ok(files.length >= 3)
  for (const path of files) {
    const file = await fetch(server.url + path)
    assert.equal(file.status, 200, path)
    const text = await file.text()
    assert.ok(!/https?:\/\/(?!www\.w3\.org)/.test(text), path)
    for (const [, name] of text.matchAll(/from '\.\/([\w.-]+)'/g)) {
      const imported = `/edge/page/${name}`
      // What is pushed here is looked at too: the loop goes on until no new file is named.
      if (!files.includes(imported)) files.push(imported)
    }
  }
  const tag = page.headers.get('etag') ?? ''
  assert.equal((await fetch(`${server.url}/`, { headers: { ...asBrowser, 'if-none-match': tag } })).status, 304)
  assert.equal(await (await fetch(`${server.url}/`)).text(), 'Iggy API')

  await using pageless = await startTestHttp({ settings: { http: { page: false } } })
  assert.equal(await (await fetch(`${pageless.url}/`, { headers: asBrowser })).text(), 'Iggy API')
})

test('closing twice is closing once, and a running request is answered first', async () => {
  const server = await startWithTopic()
  server.log.holdSyncs = true
  const value = Buffer.from([0, 0, 0, 0]).toString('base64')
  const send = { partitioning: { kind: 'partition_id', value }, messages: [{ payload: 'YQ==' }] }
  const sent = call(server, 'POST', '/streams/s/topics/t/messages', send)
  const partition = server.log.catalog.topic(0, 0)?.partitions[0]
  while (partition?.nextOffset === 0n) await new Promise((resolve) => setImmediate(resolve))
  const closing = Promise.all([server.http.close(), server.http.close()])
  server.log.syncNow()
  assert.equal((await sent).status, 201)
  await closing
  await server.broker.close()
})
