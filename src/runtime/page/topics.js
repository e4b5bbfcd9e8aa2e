/** The list of topics: a line each, and what is inside when it is open. */
import { element, keep, setAttribute, setText } from './dom.js'
import { formatAge, formatBytes, formatCount, formatRate, formatTime, formatValue, visible } from './format.js'

const PROMISES = {
  durable: 'Acknowledged when it is on the disk: survives a power cut.',
  buffered: 'Acknowledged when it is written: a power cut may take the last moments.',
}

const keyOf = ({ stream_id, topic_id }) => `${stream_id}/${topic_id}`

export class TopicList {
  #parent
  #rates
  #onToggle
  /** Key of the topic that is open. */
  openKey = null

  /** @param {Element} parent @param {import('./rates.js').Rates} rates @param {() => void} onToggle */
  constructor(parent, rates, onToggle) {
    this.#parent = parent
    this.#rates = rates
    this.#onToggle = onToggle
  }

  /** @param {readonly object[]} topics @param {number} nowUs */
  show(topics, nowUs) {
    this.#rates.keep(new Set(topics.map(keyOf)))
    if (!topics.some((topic) => keyOf(topic) === this.openKey)) this.openKey = null
    keep(this.#parent, topics, {
      key: keyOf,
      make: (topic) => this.#make(topic),
      update: (node, topic) => this.#update(node, topic, nowUs),
    })
  }

  /** @param {{ messages: readonly object[], partitions_not_read: readonly number[] }} newest of the open topic @param {number} nowUs */
  showNewest({ messages, partitions_not_read: unread }, nowUs) {
    const list = this.#parent.querySelector('.topic.open .readings')
    if (list === null) return
    keep(list, messages, {
      key: messageKey,
      make: makeReading,
      update: (node, message) => updateReading(node, message, nowUs),
    })
    const note = unread.length > 0 ? `Without partitions ${unread.join(', ')}.` : ''
    setText(this.#parent.querySelector('.topic.open .readings-note'), messages.length > 0 ? note : 'No messages yet.')
  }

  #make(topic) {
    const line = element(
      'button',
      { type: 'button', 'aria-expanded': 'false' },
      element('span', { class: 'name' }, `${visible(topic.stream)} / `, element('b', {}, visible(topic.topic))),
      element('span', { class: 'promise' }, element('span', { class: 'badge' })),
      ...['rate', 'messages', 'size', 'to consumers', 'to upstream'].map((label) =>
        element('span', { class: 'number', 'data-label': label }),
      ),
    )
    line.addEventListener('click', () => {
      this.openKey = this.openKey === keyOf(topic) ? null : keyOf(topic)
      this.#onToggle()
    })
    return element('div', { class: 'topic' }, line)
  }

  #update(node, topic, nowUs) {
    const isOpen = this.openKey === keyOf(topic)
    const line = node.querySelector('button')
    setAttribute(line, 'aria-expanded', String(isOpen))
    const badge = node.querySelector('.badge')
    setText(badge, topic.promise)
    setAttribute(badge, 'class', topic.promise === 'durable' ? 'badge good' : 'badge warn')
    setAttribute(badge, 'title', PROMISES[topic.promise])
    const groupLag = topic.groups.length === 0 ? null : Math.max(...topic.groups.map(({ lag }) => lag))
    // Of groups that are not listed nobody knows whether they have all.
    const isPart = topic.groups_not_listed > 0 && groupLag === 0
    const numbers = [
      formatRate(this.#rates.observe(keyOf(topic), topic.appended, nowUs)),
      formatCount(topic.messages),
      formatBytes(topic.size_bytes),
      isPart ? '–' : formatLag(groupLag),
      formatLag(topic.sync_lag),
    ]
    node.querySelectorAll('.number').forEach((cell, index) => {
      setText(cell, numbers[index])
    })
    node.classList.toggle('open', isOpen)
    if (isOpen) showDetails(node, topic)
    else node.querySelector('.details')?.remove()
  }
}

function showDetails(node, topic) {
  let details = node.querySelector('.details')
  if (details === null) {
    details = element(
      'div',
      { class: 'details' },
      element('p', { class: 'quiet promise-text' }),
      element('h3', {}, 'Newest readings'),
      element('p', { class: 'quiet readings-note' }),
      element('div', { class: 'readings' }),
      element('h3', {}, 'Partitions'),
      element(
        'div',
        { class: 'scroll' },
        makeTable(['partition', 'first offset', 'next offset', 'on disk to', 'messages', 'size', 'to upstream']),
      ),
      element('h3', { class: 'groups-title' }, 'Consumer groups'),
      element('div', { class: 'scroll groups' }, makeTable(['group', 'behind'])),
    )
    node.append(details)
  }
  const limits = [
    PROMISES[topic.promise],
    topic.max_size_bytes === null
      ? ''
      : `Holds ${formatBytes(topic.max_size_bytes)}, then ${OVERFLOWS[topic.overflow]}.`,
  ]
  setText(details.querySelector('.promise-text'), limits.join(' '))
  const [partitions, groups] = details.querySelectorAll('tbody')
  fillTable(partitions, [
    ...topic.partitions.map((partition) => [
      `${partition.id}${partition.holes.length > 0 ? ' (damaged)' : ''}`,
      formatCount(partition.first_offset),
      formatCount(partition.next_offset),
      formatCount(partition.durable_end),
      formatCount(partition.messages),
      formatBytes(partition.size_bytes),
      formatLag(partition.sync_lag),
    ]),
    ...(topic.partitions_not_listed > 0
      ? [[`${topic.partitions_not_listed} more`, 'not listed', '', '', '', '', '']]
      : []),
  ])
  details.querySelector('.groups').hidden = topic.groups.length === 0
  details.querySelector('.groups-title').hidden = topic.groups.length === 0
  fillTable(groups, [
    ...topic.groups.map(({ name, lag }) => [visible(name), formatLag(lag)]),
    ...(topic.groups_not_listed > 0 ? [[`${topic.groups_not_listed} more`, 'not looked at']] : []),
  ])
}

const OVERFLOWS = {
  'drop-oldest': 'the oldest messages go',
  'drop-newest': 'new messages are dropped and counted',
  reject: 'new messages are refused',
}

function makeTable(heads) {
  const head = element('tr', {}, ...heads.map((name) => element('th', {}, name)))
  return element('table', {}, element('thead', {}, head), element('tbody'))
}

function fillTable(body, rows) {
  keep(body, rows, {
    key: ([name]) => name,
    make: (row) => element('tr', {}, ...row.map(() => element('td'))),
    update: (node, row) => {
      row.forEach((text, index) => {
        setText(node.children[index], text)
      })
    },
  })
}

const formatLag = (lag) => (lag === null ? '–' : lag === 0 ? 'all' : `${formatCount(lag)} left`)
const messageKey = ({ partition_id, offset }) => `${partition_id}:${offset}`

function makeReading({ partition_id, offset, size_bytes, timestamp_us, reading }) {
  const node = element(
    'div',
    { class: 'reading' },
    element('time'),
    element('span', { class: 'format' }, reading.format),
  )
  if (reading.readings === undefined)
    node.append(element('pre', {}, visible(reading.text) + (reading.is_cut ? ' …' : '')))
  else node.append(element('div', { class: 'values' }, ...reading.readings.map(makeValue)))
  const place = `partition ${partition_id}, offset ${offset}, ${size_bytes} bytes, ${formatTime(timestamp_us)}`
  node.append(element('span', { class: 'place' }, place))
  return node
}

function makeValue({ name, value, unit }) {
  return element(
    'span',
    {},
    `${visible(name)} `,
    element('b', {}, `${formatValue(value)}${unit === '' ? '' : ` ${visible(unit)}`}`),
  )
}

function updateReading(node, { timestamp_us }, nowUs) {
  setText(node.querySelector('time'), formatAge(timestamp_us, nowUs))
}
