/** Whether a run of the simulation met what it is for: one that meets nothing breaks no invariant either. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'

/**
 * @param wasAskedShort fewer seeds or steps than usual were asked for: then the run is told to be too short, not to be wrong.
 * @param least of each, beside none.
 */
export function assertReached(
  context: TestContext,
  wasAskedShort: boolean,
  reached: Readonly<Record<string, number>>,
  least: number,
): void {
  const missing = Object.entries(reached).filter(([, count]) => count < Math.max(1, least))
  if (missing.length === 0) return
  const text = `too short to show anything, only ${missing.map(([what, count]) => `${count} ${what}`).join(', ')}`
  if (!wasAskedShort) assert.fail(text)
  context.skip(text)
}
