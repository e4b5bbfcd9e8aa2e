/** The inspection page: asks for the overview every two seconds while it is looked at, and shows it. */
import { forgetToken, get, isLoggedIn, LoginNeeded, logIn, logOut, NoAnswer } from './api.js'
import { byId, setAttribute, setText } from './dom.js'
import { Rates } from './rates.js'
import { showDisk, showFindings, showHealth, showUpstreams } from './status.js'
import { TopicList } from './topics.js'

const INTERVAL_MS = 2000
const RETRY_MAX_MS = 30_000
const NEWEST_COUNT = 10
/** Fewer topics are found by looking. */
const FILTER_FROM_COUNT = 10

const topics = new TopicList(byId('topics'), new Rates(), () => wake())
let timer = 0
let failures = 0
let isAsking = false
/** Asked for again while an answer was on its way. */
let isAskedAgain = false

byId('login-form').addEventListener('submit', async (event) => {
  event.preventDefault()
  setText(byId('login-problem'), '')
  try {
    await logIn(byId('username').value, byId('password').value)
    byId('password').value = ''
    wake()
  } catch (error) {
    setText(byId('login-problem'), error.message)
  }
})

byId('logout').addEventListener('click', async () => {
  await logOut().catch(() => forgetToken())
  wake()
})

document.addEventListener('visibilitychange', () => wake())
addEventListener('online', () => wake())
byId('topics-filter').addEventListener('input', () => wake())

/** Looks now, and from now on as long as the page is seen. */
function wake() {
  clearTimeout(timer)
  if (isAsking) {
    isAskedAgain = true
    return
  }
  if (document.visibilityState === 'visible') void look()
}

async function look() {
  isAsking = true
  try {
    if (isLoggedIn()) await refresh()
    else showLogin()
    failures = 0
    setText(byId('notice'), '')
  } catch (error) {
    if (error instanceof LoginNeeded) showLogin(error.message)
    else showFailure(error)
  } finally {
    isAsking = false
  }
  const waitMs = isAskedAgain ? 0 : Math.min(INTERVAL_MS * 2 ** failures, RETRY_MAX_MS)
  isAskedAgain = false
  if (isLoggedIn()) timer = setTimeout(wake, waitMs)
  // Logged out while the answer was on its way.
  else if (!byId('inspect').hidden) showLogin()
}

async function refresh() {
  const filter = byId('topics-filter').value.trim()
  const overview = await get(`/edge/overview${filter === '' ? '' : `?filter=${encodeURIComponent(filter)}`}`)
  byId('login').hidden = true
  byId('inspect').hidden = false
  byId('logout').hidden = false
  showHealth(overview)
  topics.show(overview.topics, overview.now_us)
  byId('topics').hidden = overview.topics.length === 0
  byId('topics-empty').hidden = overview.totals.topics > 0
  byId('topics-filter').hidden = filter === '' && overview.totals.topics < FILTER_FROM_COUNT
  setText(byId('topics-note'), topicsNote(overview, filter))
  showUpstreams(overview.sync, overview.now_us)
  showDisk(overview.disk, overview.uptime_us)
  showFindings(overview.findings, overview.findings_not_listed)
  if (topics.openKey === null) return
  const newest = await get(`/edge/topics/${topics.openKey}/newest?count=${NEWEST_COUNT}`)
  topics.showNewest(newest, overview.now_us)
}

function topicsNote({ topics, topics_not_listed: more }, filter) {
  if (more > 0) return `${more} more are not listed: type a part of the name`
  return filter !== '' && topics.length === 0 ? 'none has this in its name' : ''
}

/** @param {string} reason why now; empty when there was no login before. */
function showLogin(reason = '') {
  byId('login').hidden = false
  byId('inspect').hidden = true
  byId('logout').hidden = true
  setText(byId('notice'), reason)
  setText(byId('state'), 'log in')
  setAttribute(byId('state'), 'class', 'state')
  setText(byId('about'), '')
}

function showFailure(error) {
  failures = Math.min(failures + 1, 8)
  const isGone = error instanceof NoAnswer
  const isOld = isGone && !byId('inspect').hidden
  setText(byId('notice'), `${error.message}${isOld ? ' What you see is old.' : ''}${isGone ? ' Trying again.' : ''}`)
  if (!isGone) return
  setText(byId('state'), 'no answer')
  setAttribute(byId('state'), 'class', 'state bad')
}

wake()
