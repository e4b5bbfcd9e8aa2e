import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../../src/clock.ts'
import { LOG_SETTINGS, openLog } from '../../../src/log/index.ts'
import { silentLogger } from '../../../src/logger.ts'
import { defaultsOf } from '../../../src/setting.ts'
import { startTestHttp, startTestHttpOn } from '../../support/http-server.ts'
import { compare } from './compare.ts'
import { DIFFERENCES, type Difference, REPAIRS, SKIPPED, SKIPPED_ON_DISK } from './differences.ts'
import { type Answer, Client, readTranscript, type Step } from './recorded.ts'

const RECORDINGS = [
  { version: '0.8.0', transcript: readTranscript('http-0.8.0.json') },
  { version: '0.9.0-edge.5', transcript: readTranscript('http-0.9.0-edge.5.json') },
] as const

for (const { version, transcript } of RECORDINGS) {
  const other = RECORDINGS.find((recording) => recording.version !== version)?.transcript.steps ?? []
  const varyKeys = new Set(transcript.vary_keys)

  /** The two servers contradict each other in many steps: what either of them answers is right. */
  const differences = (step: Step, index: number, ours: Answer): string[] => {
    const mine = compare(step, ours, varyKeys)
    const twin = other[index]
    return mine.length > 0 && twin !== undefined && compare(twin, ours, varyKeys).length === 0 ? [] : mine
  }

  const repairsAfter = ({ n }: Step) =>
    REPAIRS.filter(({ step, recording }) => step === n && (recording === undefined || recording === version))

  async function replay(url: string, skipped: ReadonlyMap<number, string>): Promise<string[]> {
    using client = new Client(url)
    const problems: string[] = []
    for (const [index, step] of transcript.steps.entries()) {
      if (skipped.has(step.n)) continue
      const ours = await client.run(step)
      const found = differences(step, index, ours)
      const declared = DIFFERENCES.find(({ steps }) => steps.includes(step.n))
      problems.push(...judge(step, ours, found, declared).map((problem) => `${step.n} ${step.name}: ${problem}`))
      for (const { request } of repairsAfter(step)) await client.run({ ...step, request, capture: {} })
    }
    return problems
  }

  test(`all calls recorded against server ${version} are answered as one of the servers did`, async () => {
    assert.equal(transcript.steps.length, 569)
    await using server = await startTestHttp()
    assert.deepEqual(await replay(server.url, SKIPPED), [])
  })

  test(`so they are with messages on a disk (${version})`, async () => {
    const path = mkdtempSync(join(tmpdir(), 'edge-http-'))
    try {
      const settings = defaultsOf(LOG_SETTINGS)
      await using log = await openLog({ path, settings, clock: systemClock, logger: silentLogger })
      await using server = await startTestHttpOn(log)
      assert.deepEqual(await replay(server.url, new Map([...SKIPPED, ...SKIPPED_ON_DISK])), [])
    } finally {
      rmSync(path, { recursive: true })
    }
  })
}

function judge(
  step: Step,
  ours: Answer,
  found: readonly string[],
  declared: Difference | undefined,
): readonly string[] {
  if (declared === undefined)
    return found.map((difference) => `${difference} (${step.request.method} ${step.request.path.slice(0, 80)})`)
  if (found.length === 0) return ['is declared to differ, and does not']
  const id = (ours.json as { id?: number } | undefined)?.id
  const isAsDeclared = ours.status === declared.status && (declared.id === undefined || declared.id === id)
  return isAsDeclared ? [] : [`declared ${declared.status} ${declared.id}, answered ${ours.status} ${id}`]
}
