import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startEdgeProcess } from '../../support/edge-process.ts'

test('every signal that asks for an end gets a clean one, and the next start has lock and ports at once', async (context) => {
  const dataPath = mkdtempSync(join(tmpdir(), 'edge-signals-'))
  context.after(() => rmSync(dataPath, { recursive: true }))
  let addresses: Record<string, string> = {}
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
    await using edge = await startEdgeProcess({ dataPath, environment: addresses })
    addresses = {
      EDGE_TCP__ADDRESS: edge.tcp,
      EDGE_HTTP__ADDRESS: edge.http,
      EDGE_WEBSOCKET__ADDRESS: edge.websocket,
      EDGE_WEBTRANSPORT__ADDRESS: edge.webtransport,
    }
    assert.equal(await edge.stop(signal), 0, signal)
    const { reason } = await edge.waitFor('edge.stopping')
    assert.equal(reason, signal)
  }
})
