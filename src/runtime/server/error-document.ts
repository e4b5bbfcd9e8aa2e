/** All errors as a document, from their two tables. Pure. */
import { ERROR_TABLE, type ErrorCode, type ErrorKind } from '../../errors.ts'
import { ERROR_MAP } from './error-map.ts'

const KINDS: Readonly<Record<ErrorKind, string>> = {
  config:
    'The operator acts: the process does not start, names all problems at once and exits with 78, or with 75 where it may pass by itself.',
  protocol: 'The peer sent what no version of the protocol allows: it is answered, and closed when framing is lost.',
  auth: 'The caller has no, or not enough, rights.',
  'not-found': 'The caller named something that is not there.',
  invalid: 'The caller sent a value that cannot be taken.',
  capacity: 'Nothing is wrong but the amount: the same request may succeed later.',
  corruption: 'Bytes on the disk are not what was written: the range is named and set aside, all else reads.',
  io: 'The disk or the operating system refuses.',
  upstream: 'The central server; stays inside sync, and seen by the SDK and the command line.',
}

/** @returns `docs/errors.md`. */
export function formatErrorReference(): string {
  const codes = Object.keys(ERROR_TABLE) as ErrorCode[]
  const lines = [
    '# Errors',
    '',
    'Generated from `src/errors.ts` and `src/runtime/server/error-map.ts` by `node scripts/docs.ts`; do not edit.',
    '',
    "A client sees the number that Apache Iggy's server gives in the same situation: `classic` is the protocol of 0.8, `vsr` the",
    'newer one. HTTP carries the number of `vsr` in `id`, beside its status. `again` says whether the same request may succeed',
    'later without a change.',
    '',
  ]
  for (const [kind, sentence] of Object.entries(KINDS)) {
    lines.push(
      `## ${kind}`,
      '',
      sentence,
      '',
      '| code | classic | vsr | HTTP | again |',
      '| --- | --- | --- | --- | --- |',
    )
    for (const code of codes.filter((each) => ERROR_TABLE[each].kind === kind)) {
      const { classic, vsr, http } = ERROR_MAP[code]
      lines.push(`| \`${code}\` | ${classic} | ${vsr} | ${http} | ${ERROR_TABLE[code].isRetryable ? 'yes' : 'no'} |`)
    }
    lines.push('')
  }
  return `${lines.join('\n').trimEnd()}\n`
}
