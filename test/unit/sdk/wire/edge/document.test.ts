import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { DEFAULT_LIMITS, EDGE_CODES, FRAMES } from '../../../../../src/sdk/wire/edge/index.ts'

const root = new URL('../../../../../', import.meta.url)
const text = readFileSync(new URL('docs/protocol/edge.md', root), 'utf8')
const vectors: { frames: { name: string; hex: string }[] } = JSON.parse(
  readFileSync(new URL('test/fixtures/edge/vectors.json', root), 'utf8'),
)

test('the table of errors is the table of the code', () => {
  const expected = Object.values(EDGE_CODES).map(({ code, meaning, edgeError, retryMs, after }) => {
    const error = edgeError === null ? '–' : `\`${edgeError}\``
    return `| ${code} | ${meaning} | ${error} | ${retryMs ?? '–'} | ${after} |`
  })
  assert.deepEqual(rowsOf('## 10. Errors'), expected)
})

test('the table of limits names every limit, in the order of its key, with its default', () => {
  const defaults = rowsOf('## 3. Session').map((row) =>
    row
      .split('|')
      .slice(1, 4)
      .map((cell) => cell.trim()),
  )
  const expected = Object.values(DEFAULT_LIMITS).map((value, at) => [at + 1, value])
  assert.deepEqual(
    defaults.map(([key, , value]) => [Number(key), Number(value)]),
    expected,
  )
})

test('the grammar has every frame with its number and as many fields', () => {
  for (const [type, { number, fields }] of Object.entries(FRAMES)) {
    const rule = new RegExp(`^${type} = \\[(\\d+), (.*)\\]`, 'm').exec(text)
    assert.ok(rule !== null, `${type} is not in the grammar`)
    assert.equal(Number(rule[1]), number, type)
    const required = topLevel(rule[2] ?? '').filter((field) => !field.startsWith('?'))
    assert.equal(required.length, Object.keys(fields).length, `${type}: ${required.join(' | ')}`)
  }
})

test('every frame of the example is one of the vectors', () => {
  const known = new Set(vectors.frames.map(({ hex }) => hex))
  const shown = [...text.slice(text.indexOf('## 14.')).matchAll(/`([0-9a-f]{8,})`/g)].map((match) => match[1] ?? '')
  assert.ok(shown.length >= 13)
  assert.deepEqual(
    shown.filter((hex) => !known.has(hex)),
    [],
  )
})

/** Rows of the first table of a chapter, without its head. */
function rowsOf(chapter: string): string[] {
  const lines = text.slice(text.indexOf(chapter)).split('\n')
  const start = lines.findIndex((line) => line.startsWith('|'))
  const end = lines.findIndex((line, at) => at > start && !line.startsWith('|'))
  return lines.slice(start + 2, end)
}

/** Parts between commas that are in no bracket. */
function topLevel(list: string): string[] {
  const parts: string[] = ['']
  let depth = 0
  for (const character of list) {
    depth += '[{('.includes(character) ? 1 : ']})'.includes(character) ? -1 : 0
    if (character === ',' && depth === 0) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts.map((part) => part.trim())
}
