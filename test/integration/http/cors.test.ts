import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestHttp } from '../../support/http-server.ts'

const PAGE = 'http://dashboard.test:3050'

test('a page of an allowed origin may call, log in and read refusals; another one learns nothing', async () => {
  await using server = await startTestHttp({
    settings: { 'http.cors': { allowed_origins: [PAGE], allow_credentials: true } },
  })
  const ask = async (method: string, path: string, origin: string) => {
    const { status, headers } = await fetch(server.url + path, { method, headers: { origin } })
    return [status, headers.get('access-control-allow-origin'), headers.get('access-control-allow-credentials')]
  }
  assert.deepEqual(await ask('OPTIONS', '/users/login', PAGE), [200, PAGE, 'true'])
  assert.deepEqual(await ask('GET', '/ping', PAGE), [200, PAGE, 'true'])
  assert.deepEqual(await ask('GET', '/streams', PAGE), [401, PAGE, 'true'])
  assert.deepEqual(await ask('OPTIONS', '/streams', 'http://elsewhere.test'), [200, null, null])
  assert.deepEqual(await ask('GET', '/ping', 'http://elsewhere.test'), [200, null, null])
})
