/** A gateway whose clock chip lost its battery starts in 2099 until the network comes. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Clock, systemClock } from '../../../src/clock.ts'
import { silentLogger } from '../../../src/logger.ts'
import { DEFAULT_ROOT } from '../../../src/runtime/broker/index.ts'
import { loadConfig } from '../../../src/runtime/config/load.ts'
import { startEdge } from '../../../src/runtime/edge.ts'
import { connect } from '../../../src/sdk/index.ts'
import { LOOPBACK_ENVIRONMENT } from '../../support/edge-process.ts'

test('a clock that was in 2099 does not hold later stamps there, and is named while it is', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-clock-'))
  context.after(() => rmSync(folder, { recursive: true }))
  let isAhead = true
  const clock: Clock = {
    ...systemClock,
    wallUs: () => (isAhead ? BigInt(Date.UTC(2099, 0, 1)) * 1000n : systemClock.wallUs()),
  }
  const environment = { ...LOOPBACK_ENVIRONMENT, EDGE_WEBTRANSPORT__ENABLED: 'false' }
  const config = loadConfig({ file: null, environment, flags: { 'system.path': folder } })
  await using edge = await startEdge({ config, clock, logger: silentLogger, root: DEFAULT_ROOT })
  await using client = await connect(`iggy://iggy:iggy@${edge.addresses.tcp}`)
  await client.streams.create('s')
  await client.topics.create('s', 't', { partitions: 1 })
  const stampOfNext = async (): Promise<bigint> => {
    await client.messages.send('s', 't', { kind: 'partition', partitionId: 0 }, [{ payload: new Uint8Array(1) }])
    const { messages } = await client.messages.poll('s', 't', { partitionId: 0, strategy: { kind: 'last' }, count: 1 })
    return messages[0]?.timestampUs ?? -1n
  }
  assert.ok((await stampOfNext()) < BigInt(Date.UTC(1971, 0, 1)) * 1000n)
  const health = await (await fetch(`http://${edge.addresses.http}/health`)).json()
  assert.match(JSON.stringify(health), /"clock","state":"starting","cause":"the clock is not set/)
  isAhead = false
  const before = systemClock.wallUs()
  const stamp = await stampOfNext()
  assert.ok(stamp >= before && stamp <= systemClock.wallUs(), `${stamp}`)
})
