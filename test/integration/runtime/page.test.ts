/** The inspection page in a real browser, in front of a real edge. */
import assert from 'node:assert/strict'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { BrowserTab, browserBinary } from '../../support/browser.ts'
import { type EdgeProcess, startEdgeProcess } from '../../support/edge-process.ts'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'

const BASIC = `Basic ${Buffer.from('iggy:iggy').toString('base64')}`
const HOSTILE_STREAM = '<img src=x onerror=alert(1)>'
const HOSTILE_TOPIC = '"><script>alert(2)</script>\u202egpj'
const TOPIC_COUNT = 12
/** The page asks less often while nobody answers. */
const PAGE_TIMEOUT_MS = 30_000

const browser = browserBinary()
const skip = 'reason' in browser ? browser.reason : false
let folder = ''
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edge-page-test-'))
})
after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))

const openTab = async (name: string): Promise<BrowserTab> => {
  assert.ok('path' in browser)
  return await BrowserTab.open(browser.path, join(folder, `profile-${name}`))
}

const post = async (edge: EdgeProcess, path: string, body: object): Promise<void> => {
  const headers = { authorization: BASIC, 'content-type': 'application/json' }
  const answer = await fetch(`http://${edge.http}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  assert.ok(answer.ok, `${path} answers ${answer.status}`)
}

const remove = async (edge: EdgeProcess, path: string): Promise<void> => {
  const answer = await fetch(`http://${edge.http}${path}`, { method: 'DELETE', headers: { authorization: BASIC } })
  assert.ok(answer.ok, `${path} answers ${answer.status}`)
}

const makeTopic = (edge: EdgeProcess, stream: string, name: string): Promise<void> =>
  post(edge, `/streams/${encodeURIComponent(stream)}/topics`, { name, partitions_count: 1 })

const send = (edge: EdgeProcess, stream: string, topic: string, payload: string | Uint8Array): Promise<void> =>
  post(edge, `/streams/${encodeURIComponent(stream)}/topics/${encodeURIComponent(topic)}/messages`, {
    partitioning: { kind: 'balanced', value: '' },
    messages: [{ payload: Buffer.from(payload).toString('base64') }],
  })

/** Opens the topic of that name, as a click does. */
const openTopic = (tab: BrowserTab, name: string): Promise<unknown> =>
  tab.evaluate(`[...document.querySelectorAll('.topic > button')]
    .find((line) => line.querySelector('.name b').textContent === ${JSON.stringify(name)}).click()`)

const shows = (tab: BrowserTab, selector: string, text: string): Promise<void> =>
  eventually(async () => (await tab.textOf(selector)).includes(text), `${selector} shows "${text}"`, PAGE_TIMEOUT_MS)

test('names and payloads are shown as what they are, readings by their format, topics by a part of the name', {
  skip,
}, async () => {
  await using edge = await startEdgeProcess({ dataPath: join(folder, 'shown') })
  await using tab = await openTab('shown')
  await post(edge, '/streams', { name: HOSTILE_STREAM })
  await makeTopic(edge, HOSTILE_STREAM, HOSTILE_TOPIC)
  await post(edge, '/streams', { name: 'sensors' })
  for (let n = 0; n < TOPIC_COUNT; n++) await makeTopic(edge, 'sensors', `climate-${n}`)

  await tab.goTo(`http://${edge.http}/`)
  await shows(tab, '#login', 'Log in')
  await tab.logIn('iggy', 'wrong')
  await shows(tab, '#login-problem', 'User or password is wrong.')
  await tab.logIn('iggy', 'iggy')
  await shows(tab, '#state', 'ready')
  await shows(tab, '#topics', '<img src=x onerror=alert(1)> / "><script>alert(2)</script>\\u{202e}gpj')

  await openTopic(tab, 'climate-7')
  await shows(tab, '.topic.open', 'No messages yet.')
  await send(edge, 'sensors', 'climate-7', '<b onclick=alert(3)>21.5</b>')
  await send(edge, 'sensors', 'climate-7', '[{"n":"temp","u":"Cel","v":21.53}]')
  await send(edge, 'sensors', 'climate-7', Uint8Array.of(0, 255))
  await shows(tab, '.readings', '00 ff')
  await shows(tab, '.readings', 'partition 0, offset 2, 2 bytes')
  await shows(tab, '.readings', 'temp 21.53 Cel')
  await shows(tab, '.readings', '<b onclick=alert(3)>21.5</b>')
  assert.ok(!(await tab.textOf('.topic.open')).includes('No messages yet.'))

  await tab.evaluate(`document.getElementById('topics-filter').value = 'CLIMATE-1'`)
  await tab.evaluate(`document.getElementById('topics-filter').dispatchEvent(new Event('input'))`)
  const listed = `[...document.querySelectorAll('.topic .name b')].map((name) => name.textContent).join()`
  await eventually(async () => (await tab.evaluate(listed)) === 'climate-1,climate-10,climate-11', 'the filter acts')
  await remove(edge, '/streams/sensors')
  await shows(tab, '#topics-note', 'none has this in its name')
  assert.equal(await tab.evaluate(`document.getElementById('topics-filter').hidden`), false, 'it can be emptied')

  // The last answer comes when the login has ended.
  await tab.evaluate(`const inTime = fetch
    window.fetch = async (path, init) => {
      const answer = await inTime(path, init)
      if (path.startsWith('/edge/overview')) await new Promise((resolve) => setTimeout(resolve, 500))
      return answer
    }
    document.dispatchEvent(new Event('visibilitychange'))
    document.getElementById('logout').click()`)
  await shows(tab, '#login', 'Log in')
  assert.equal(await tab.textOf('#inspect'), '')
  assert.deepEqual(tab.complaints, [])
})

test('under an open page the edge ends, comes back, and is replaced by one that knows no login', { skip }, async () => {
  const environment = { EDGE_HTTP__ADDRESS: `127.0.0.1:${await freePort()}` }
  const dataPath = join(folder, 'replaced')
  await using tab = await openTab('replaced')
  {
    await using edge = await startEdgeProcess({ dataPath, environment })
    await tab.goTo(`http://${edge.http}/`)
    await shows(tab, '#login', 'Log in')
    await tab.logIn('iggy', 'iggy')
    await shows(tab, '#state', 'ready')
  }
  await shows(tab, '#notice', 'No answer from the server. What you see is old. Trying again.')
  {
    await using _again = await startEdgeProcess({ dataPath, environment })
    await shows(tab, '#state', 'ready')
    assert.equal(await tab.textOf('#notice'), '')
  }
  await rename(dataPath, `${dataPath}-kept`)
  {
    await using _other = await startEdgeProcess({ dataPath, environment })
    await shows(tab, '#notice', 'Your login has ended.')
    await shows(tab, '#login', 'Log in')
  }
  await tab.logIn('iggy', 'iggy')
  await shows(tab, '#login-problem', 'No answer from the server.')
  assert.deepEqual(tab.complaints, [])
})
