/** Health, upstreams, disk and findings. */
import { byId, element, keep, setAttribute, setFacts, setText } from './dom.js'
import { formatAge, formatBytes, formatCount, formatDuration, formatTime } from './format.js'

const DAY_US = 86_400e6
const STATES = { ready: ['ready', 'good'], degraded: ['degraded', 'warn'], 'not-ready': ['not ready', 'bad'] }
const ROUTE_TONES = {
  connected: 'good',
  paused: 'warn',
  connecting: 'warn',
  waiting: 'warn',
  blocked: 'bad',
  stopped: 'bad',
}
const CHECK_TONES = { failed: 'bad', stalled: 'bad', starting: 'warn' }

export function showHealth({ health, version, uptime_us, listeners, devices }) {
  const [word, tone] = STATES[health.status]
  setText(byId('state'), word)
  setAttribute(byId('state'), 'class', `state ${tone}`)
  const doors = listeners.map(({ name, address }) => `${name} ${address}`)
  const facts = [`version ${version}, up ${formatDuration(uptime_us)}`, ...doors, ...deviceFacts(devices)]
  setText(byId('about'), facts.join(' · '))
  const bad = health.checks.filter(({ state }) => state in CHECK_TONES)
  keep(byId('checks'), bad, {
    key: ({ name }) => name,
    make: () => element('div', { class: 'check' }, element('strong'), element('p'), element('p', { class: 'quiet' })),
    update(node, { name, state, cause, action, for_seconds }) {
      setAttribute(node, 'class', `check ${CHECK_TONES[state]}`)
      const [title, text, advice] = node.children
      setText(title, `${name}: ${state} for ${formatDuration(for_seconds * 1e6)}`)
      setText(text, cause)
      setText(advice, action)
    },
  })
}

function deviceFacts(devices) {
  if (devices === null) return []
  const lost = devices.lost_readings.map(({ reason, count }) => `${formatCount(count)} ${reason}`)
  return [
    `devices ${formatCount(devices.connected)}`,
    ...(lost.length > 0 ? [`readings lost: ${lost.join(', ')}`] : []),
  ]
}

export function showUpstreams(routes, nowUs) {
  byId('upstreams-empty').hidden = routes.length > 0
  keep(byId('upstreams'), routes, {
    key: ({ route }) => route,
    make: () =>
      element(
        'div',
        { class: 'card' },
        element('div', { class: 'title' }, element('strong'), element('span', { class: 'badge' })),
        element('dl', { class: 'facts' }),
      ),
    update(node, route) {
      setText(node.querySelector('strong'), route.route)
      const badge = node.querySelector('.badge')
      setText(badge, route.state)
      setAttribute(badge, 'class', `badge ${ROUTE_TONES[route.state]}`)
      const facts = [
        ['upstream', `${route.upstream} (${route.address})`],
        ['waiting to go', formatCount(route.lag_messages)],
        ['confirmed', formatCount(route.confirmed_messages)],
        [
          'last confirmed',
          route.last_confirmed_at_us === null ? 'not since the start' : formatAge(route.last_confirmed_at_us, nowUs),
        ],
      ]
      if (route.daily_budget_bytes !== null)
        facts.push(['sent today', `${formatBytes(route.used_today_bytes)} of ${formatBytes(route.daily_budget_bytes)}`])
      for (const [label, count] of lossesOf(route)) if (count > 0) facts.push([label, formatCount(count)])
      if (route.state !== 'connected')
        facts.push(
          ['failed attempts', formatCount(route.failures)],
          [
            route.state === 'paused' ? 'goes on' : 'next try',
            route.next_try_at_us === null ? '–' : formatAge(route.next_try_at_us, nowUs),
          ],
        )
      if (route.cause !== '') facts.push(['cause', route.cause], ['what to do', route.action])
      setFacts(node.querySelector('dl'), facts)
    },
  })
}

const lossesOf = (route) => [
  ['dropped here before they were sent', route.gap_messages],
  ['not readable here', route.unreadable_messages],
  ['refused upstream, in edge/dead-letters', route.dead_letter_messages],
  ['lost upstream, sent again', route.resent_messages],
]

export function showDisk(disk, uptimeUs) {
  const card = byId('disk')
  if (card.children.length === 0)
    card.append(
      element('div', { class: 'title' }, element('strong', {}, 'Space'), element('span', { class: 'space' })),
      element('meter', { class: 'space-meter', min: '0', max: '1', low: '0.8', high: '0.95', optimum: '0' }),
      element(
        'div',
        { class: 'title flash-title' },
        element('strong', {}, 'Flash budget'),
        element('span', { class: 'flash' }),
      ),
      element('meter', { class: 'flash-meter', min: '0', max: '1', low: '0.05', high: '0.2', optimum: '1' }),
      element('dl', { class: 'facts' }),
    )
  const query = (selector) => card.querySelector(selector)
  const refusal = disk.is_writable ? '' : 'takes no writes · '
  setText(query('.space'), `${refusal}${formatBytes(disk.used_bytes)} of ${formatBytes(disk.budget_bytes)}`)
  setAttribute(query('.space'), 'class', disk.is_writable ? 'space' : 'space bad')
  setAttribute(query('.space-meter'), 'value', share(disk.used_bytes, disk.budget_bytes))
  const hasFlashBudget = disk.flash_budget_per_day_bytes > 0
  query('.flash-title').hidden = !hasFlashBudget
  query('.flash-meter').hidden = !hasFlashBudget
  setText(query('.flash'), `${formatBytes(disk.flash_budget_left_bytes)} left now`)
  setAttribute(query('.flash-meter'), 'value', share(disk.flash_budget_left_bytes, disk.flash_budget_per_day_bytes))
  const perDay = (disk.written_bytes * DAY_US) / Math.max(uptimeUs, 1)
  const factor = disk.appended_bytes > 0 ? (disk.written_bytes / disk.appended_bytes).toFixed(2) : '–'
  setFacts(query('dl'), [
    ['free on the disk', `${formatBytes(disk.free_bytes)} of ${formatBytes(disk.total_bytes)}`],
    ['written since start', formatBytes(disk.written_bytes)],
    [
      'at this pace a day',
      // Below an hour a rate a day says nothing.
      `${uptimeUs < DAY_US / 24 ? 'known after 1 h' : formatBytes(perDay)}${hasFlashBudget ? ` of ${formatBytes(disk.flash_budget_per_day_bytes)}` : ', no limit'}`,
    ],
    ['written per stored byte', factor],
    [
      'syncs',
      `${formatCount(disk.syncs)}, ${formatCount(disk.failed_syncs)} failed, last ${(disk.last_sync_us / 1000).toFixed(1)} ms`,
    ],
  ])
}

/** @param {readonly object[]} findings newest first @param {number} notListed older ones */
export function showFindings(findings, notListed) {
  const errorCount = findings.filter(({ level }) => level === 'error').length
  const count = findings.length + notListed
  const counted = `${count} ${count === 1 ? 'finding' : 'findings'}`
  const shown = notListed > 0 ? `, the newest ${findings.length} here` : ''
  const text =
    findings.length === 0
      ? 'Nothing was found wrong with the data folder.'
      : `${counted} about the data folder${shown}${errorCount > 0 ? `, ${errorCount} with lost or refused data` : ''}`
  setText(byId('findings-summary'), text)
  setAttribute(byId('findings-summary'), 'class', errorCount > 0 ? 'bad' : findings.length > 0 ? 'warn' : 'quiet')
  keep(byId('findings'), findings, {
    key: ({ at_us, event, text }) => `${at_us} ${event} ${text}`,
    make: ({ at_us, level, text, action }) =>
      element(
        'li',
        { class: level === 'error' ? 'bad' : 'warn' },
        element('p', {}, text),
        element('p', { class: 'quiet' }, `${formatTime(at_us)} · ${action}`),
      ),
    update: () => undefined,
  })
}

function share(part, whole) {
  return String(whole > 0 ? Math.min(1, part / whole) : 0)
}
