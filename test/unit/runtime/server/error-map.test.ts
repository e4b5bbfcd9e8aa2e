import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EdgeError, ERROR_TABLE, type ErrorCode } from '../../../../src/errors.ts'
import { ERROR_MAP } from '../../../../src/runtime/server/error-map.ts'
import { isDeniedEarly, vsrCodeOf } from '../../../../src/runtime/server/vsr-errors.ts'
import { CODE } from '../../../../src/sdk/wire/codes.ts'
import { isIggyErrorCode, VSR_ONLY_ERRORS } from '../../../../src/sdk/wire/error-codes.ts'

/** Clients take these for the end of their connection, reconnect and send the request again. */
const RECONNECT = [8, 9, 30, 31, 61, 304]

test('every error has a number that Iggy knows, in both generations, and an HTTP status', () => {
  for (const code of Object.keys(ERROR_TABLE) as ErrorCode[]) {
    const { classic, vsr, http } = ERROR_MAP[code]
    assert.ok(isIggyErrorCode(classic), `${code}: ${classic}`)
    assert.ok(isIggyErrorCode(vsr), `${code}: ${vsr}`)
    assert.ok(http >= 400 && http < 600, `${code}: ${http}`)
  }
})

test('no error of a request makes clients reconnect and repeat it, but that of a stale session', () => {
  for (const [code, { classic, vsr }] of Object.entries(ERROR_MAP)) {
    if (code === 'EDGE_SESSION_STALE') continue
    assert.ok(!RECONNECT.includes(classic) && !RECONNECT.includes(vsr), code)
  }
})

test('classic gets a number that only vsr has where it has none that says as much', () => {
  const standAlone = ['EDGE_OPTION_UNKNOWN', 'EDGE_OPTION_INVALID', 'EDGE_OPTIONS_TOO_LARGE']
  const limits = ['EDGE_TOO_MANY_STREAMS', 'EDGE_TOO_MANY_TOPICS', 'EDGE_TOO_MANY_OFFSETS']
  const found = Object.entries(ERROR_MAP).filter(([, { classic }]) => VSR_ONLY_ERRORS.has(classic))
  assert.deepEqual(found.map(([code]) => code).sort(), [...standAlone, ...limits].sort())
})

test('what can be tried again is told so over vsr and HTTP', () => {
  for (const [code, { kind, isRetryable }] of Object.entries(ERROR_TABLE)) {
    if (kind !== 'capacity' || !isRetryable || code === 'EDGE_TOPIC_FULL') continue
    assert.deepEqual([ERROR_MAP[code as ErrorCode].vsr, ERROR_MAP[code as ErrorCode].http], [58, 503], code)
  }
})

test('writes to partitions say 20 of whatever cannot be resolved, reads say what it is', () => {
  const missing = new EdgeError('EDGE_PARTITION_NOT_FOUND', 'not there')
  for (const code of [CODE.sendMessages, CODE.storeConsumerOffset, CODE.deleteConsumerOffset]) {
    assert.equal(vsrCodeOf(missing, code), 20)
  }
  assert.equal(vsrCodeOf(missing, CODE.pollMessages), 3007)
  assert.equal(vsrCodeOf(new EdgeError('EDGE_COMMAND_MALFORMED', 'no ack'), CODE.storeConsumerOffset), 20)
  assert.equal(vsrCodeOf(new EdgeError('EDGE_COMMAND_MALFORMED', 'bad'), CODE.sendMessages), 3)
})

test('refusals before an operation is carried out come in the status, its outcome in the result', () => {
  for (const early of [3, 52, 1019, 2015, 4041, 4042]) assert.equal(isDeniedEarly(early), true, `${early}`)
  for (const late of [41, 46, 1009, 1012, 2010, 2019, 3007, 5000]) assert.equal(isDeniedEarly(late), false, `${late}`)
})
