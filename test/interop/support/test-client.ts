/** One test per scenario of every version and transport of a client, and its rows of the matrix. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type ClientRun, runsOfClient } from '../client-catalog.ts'
import type { Prepare, Program } from '../toolchain/program.ts'
import { Unavailable } from '../toolchain/run-tool.ts'
import { IS_WRITING_MATRIX, writeMatrixRow } from './matrix.ts'
import { runScenarios } from './run-scenarios.ts'

export function testClient(client: string, prepare: Prepare): void {
  const runs = runsOfClient(client)
  for (const version of new Set(runs.map((run) => run.version))) {
    test(`${client} ${version}`, async (t) => {
      const program = await programOf(prepare, version)
      if (program instanceof Unavailable) {
        t.skip(`${client} ${version} is not available here: ${program.message}`)
        return
      }
      for (const run of runs.filter((run) => run.version === version)) await testRun(t, run, program)
    })
  }
}

async function programOf(prepare: Prepare, version: string): Promise<Program | Unavailable> {
  try {
    return await prepare(version)
  } catch (error) {
    if (error instanceof Unavailable) return error
    throw error
  }
}

async function testRun(t: TestContext, run: ClientRun, program: Program): Promise<void> {
  await t.test(`over ${run.transport}`, async (t) => {
    const results = await runScenarios(program, run)
    for (const scenario of run.scenarios) {
      await t.test(`${scenario} works for ${run.client} ${run.version} over ${run.transport}`, () => {
        const result = results.get(scenario)
        assert.ok(result?.ok === true, result?.detail ?? 'nothing was reported')
        assert.deepEqual([result.client, result.version, result.transport], [run.client, run.version, run.transport])
      })
    }
    if (IS_WRITING_MATRIX) await writeMatrixRow(run, results)
  })
}
