/** Every recorded session, played again from the client's side: the answers are the recorded ones, but for what is named here. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../../src/clock.ts'
import { LOG_SETTINGS, type Log, openLog } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { startProtocolServer } from '../../support/protocol-server.ts'
import { type Difference, formatDifferences, replayTranscript } from '../../support/transcript-replay.ts'

const SETTINGS = { ...defaultsOf(LOG_SETTINGS), journal_file_size: 1024 * 1024 }
const FOLDER = new URL('../../fixtures/iggy/transcripts/', import.meta.url)

const SESSIONS: readonly (readonly string[])[] = [
  ['classic-cli-0.13.0'],
  ['classic-go-0.7.0'],
  ['classic-go-0.8.0'],
  ['classic-java-0.7.0'],
  ['classic-java-0.8.0'],
  ['classic-python-0.8.0'],
  ['classic-rust-0.10.0'],
  ['classic-rust-0.10.0-highlevel'],
  ['v5-cli-0.14.0'],
  ['v5-python-0.9.0-part1', 'v5-python-0.9.0-part2'],
  ['v5-rust-0.11.0-highlevel'],
  ['v5-rust-0.11.0-part1', 'v5-rust-0.11.0-part2'],
]

interface Intended {
  readonly reason: string
  readonly covers: (difference: Difference) => boolean
}

const IGGY_SEGMENT_SIZE = '0000004000000000'

/** Where our answer differs on purpose. Each entry must still be met by some session, or it goes. */
const INTENDED: readonly Intended[] = [
  {
    reason:
      'segments end at 16 MiB unless configured otherwise: retention drops whole segments, and disks here are small',
    covers: ({ field, recorded }) => /\.(valueBytes|defaultBytes)$/.test(field) && recorded === IGGY_SEGMENT_SIZE,
  },
  {
    reason: 'the catalogue goes on with our own keys',
    covers: ({ step, field }) => step.includes('describe_options') && field === '.body.options.length',
  },
  {
    reason: 'the recording proxy turned one durability into both; we show what was sent',
    covers: ({ field, recorded, found }) =>
      field.includes('explicitOptions') && recorded === hex('persisted') && found === hex('replicated'),
  },
  {
    reason: 'a purge keeps the numbering: an offset once given is never given again',
    covers: ({ step, field, recorded }) =>
      step.includes('poll_messages') && field === '.body.currentOffset' && recorded === 0n,
  },
  {
    reason: 'offsets from before a purge are still below the next one, so they can be stored',
    covers: ({ step, field, recorded }) =>
      step.includes('store_consumer_offset') && field === '.outcome' && String(recorded).startsWith('status 4100'),
  },
  {
    reason: 'a join moves the whole surplus, so the first member polls its partitions in another turn',
    covers: ({ step }) =>
      step.includes("group 'grp'") && step.includes('partition None') && step.includes('poll_messages'),
  },
]

/** The real log in a folder of its own. */
async function openTestLog(): Promise<{ log: Log } & AsyncDisposable> {
  const folder = mkdtempSync(join(tmpdir(), 'edge-replay-'))
  const log = await openLog({ path: folder, clock: systemClock, logger: silentLogger, settings: SETTINGS })
  return {
    log,
    async [Symbol.asyncDispose]() {
      await log.close()
      rmSync(folder, { recursive: true })
    },
  }
}

const met = new Set<Intended>()

async function replay(names: readonly string[], log?: Log): Promise<void> {
  await using running = await startProtocolServer(log === undefined ? {} : { log })
  const paths = names.map((name) => fileURLToPath(new URL(`${name}.json`, FOLDER)))
  const { comparedCount, differences } = await replayTranscript(paths, running.listener.port)
  assert.ok(comparedCount > 20, `${comparedCount} answers compared`)
  const unexpected = differences.filter((difference) => {
    const intended = INTENDED.find(({ covers }) => covers(difference))
    if (intended !== undefined) met.add(intended)
    return intended === undefined
  })
  assert.equal(formatDifferences(unexpected), '')
}

for (const names of SESSIONS) {
  test(`the recorded session ${names.join(' and ')} gets the recorded answers`, () => replay(names))
}

for (const names of [['classic-rust-0.10.0'], ['v5-rust-0.11.0-part1', 'v5-rust-0.11.0-part2']]) {
  test(`the recorded session ${names.join(' and ')} gets them from the log on disk too`, async () => {
    await using store = await openTestLog()
    await replay(names, store.log)
  })
}

test('every difference named as intended is still there', () => {
  assert.deepEqual(
    INTENDED.filter((intended) => !met.has(intended)).map(({ reason }) => reason),
    [],
  )
})

function hex(text: string): string {
  return Buffer.from(text).toString('hex')
}
