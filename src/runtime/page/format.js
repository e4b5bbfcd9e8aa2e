/** Numbers, sizes, times and payload values as a person reads them. Pure. */

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
const SECOND_US = 1e6

/** @param {number} bytes @returns {string} such as `1.5 MiB`; always at most four digits. */
export function formatBytes(bytes) {
  let [value, unit] = [bytes, 0]
  while (value >= 1000 && unit < BYTE_UNITS.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 ? value : digits(value)} ${BYTE_UNITS[unit]}`
}

/** @param {number} count @returns {string} with thin spaces between thousands. */
export function formatCount(count) {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, '\u202f')
}

/** @param {number | null} perSecond null while it is not known yet. @returns {string} */
export function formatRate(perSecond) {
  if (perSecond === null) return '–'
  if (perSecond > 0 && perSecond < 0.095) return `${digits(perSecond * 60)}/min`
  return `${digits(perSecond)}/s`
}

/** @param {number} us @returns {string} the two largest units: `3 d 4 h`, `12 s`. */
export function formatDuration(us) {
  const seconds = Math.max(0, Math.floor(us / SECOND_US))
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ]
  const first = parts.findIndex(([amount]) => amount !== 0)
  if (first < 0) return '0 s'
  return parts
    .slice(first, first + 2)
    .filter(([amount]) => amount !== 0)
    .map(([amount, unit]) => `${amount} ${unit}`)
    .join(' ')
}

/** @param {number} atUs @param {number} nowUs @returns {string} `12 s ago`, or `in 12 s`. */
export function formatAge(atUs, nowUs) {
  const distance = nowUs - atUs
  if (Math.abs(distance) < SECOND_US) return 'now'
  return distance > 0 ? `${formatDuration(distance)} ago` : `in ${formatDuration(-distance)}`
}

/** @param {number} us @returns {string} local wall time, with the day when it is another one. */
export function formatTime(us, now = new Date()) {
  const date = new Date(us / 1000)
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':')
  if (date.toDateString() === now.toDateString()) return time
  return `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, '0')}-${String(date.getDate()).padStart(2, '0')} ${time}`
}

/**
 * @param {string} text that somebody else chose: a name, a payload.
 * @returns {string} with what would turn its direction round, or move a terminal's cursor, as a visible escape.
 */
export function visible(text) {
  return text.replace(/[\p{Bidi_Control}\p{Cc}]/gu, (sign) => {
    if (sign === '\n' || sign === '\t') return sign
    return `\\u{${sign.codePointAt(0).toString(16)}}`
  })
}

/** @param {unknown} value of a reading. @returns {string} floats without noise digits. */
export function formatValue(value) {
  if (typeof value !== 'number' || Number.isInteger(value)) return visible(String(value))
  return String(Number(value.toPrecision(6)))
}

/** Three significant digits, never in exponents. */
function digits(value) {
  if (value >= 100 || value === 0) return formatCount(value)
  return value >= 10 ? value.toFixed(1) : value.toFixed(2)
}
