/** What a thief of the disk learns: nothing that anybody sent, and no key. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Client } from '../../../src/sdk/index.ts'
import { stringHeader } from '../../../src/sdk/wire/header-values.ts'
import { type EdgeWorld, startEdgeWorld } from '../../support/edge-world.ts'
import { keyText } from '../../support/encryption.ts'
import { eventually } from '../../support/eventually.ts'

const PAYLOAD = 'the pressure of pump seven'
const HEADER = 'cellar of the old brewery'
/** Too large for a group of the journal: it is kept apart. */
const LARGE_BYTES = 600_000
const SEALED = { EDGE_LOG__ENCRYPTION__ENABLED: 'true', EDGE_LOG__ENCRYPTION__KEY: keyText(7) }

/** Sends what is secret, has it gathered into segments, and leaves some of it in the journal. */
async function fill(environment: Record<string, string>): Promise<EdgeWorld> {
  const world = await startEdgeWorld({
    EDGE_LOG__REPACK_AFTER: '1s',
    EDGE_MESSAGE_DEDUPLICATION__ENABLED: 'true',
    ...environment,
  })
  const client = await world.connect()
  await client.streams.create('plant')
  await client.topics.create('plant', 'readings')
  await send(client, PAYLOAD)
  await send(client, PAYLOAD.padEnd(LARGE_BYTES))
  await eventually(() => filesOf(world).some((file) => file.endsWith('.seg')), 'a segment')
  await send(client, PAYLOAD)
  await world.restart()
  return world
}

async function send(client: Client, payload: string): Promise<void> {
  const headers = [{ key: stringHeader('place'), value: stringHeader(HEADER) }]
  const message = { payload: new TextEncoder().encode(payload), headers }
  await client.messages.send('plant', 'readings', { kind: 'partition', partitionId: 0 }, [message])
}

const filesOf = ({ dataPath }: EdgeWorld): readonly string[] =>
  readdirSync(dataPath, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

const filesWith = (world: EdgeWorld, text: string) => filesOf(world).filter((file) => readFileSync(file).includes(text))

test('no file of the data folder holds a payload, a header or the key in clear', async () => {
  await using world = await fill(SEALED)
  for (const secret of [PAYLOAD, HEADER, keyText(7)]) assert.deepEqual(filesWith(world, secret), [], secret)
  const client = await world.connect()
  const polled = await client.messages.poll('plant', 'readings', { partitionId: 0, strategy: { kind: 'first' } })
  assert.deepEqual(
    polled.messages.map(({ payload }) => new TextDecoder().decode(payload).trimEnd()),
    [PAYLOAD, PAYLOAD, PAYLOAD],
  )
})

test('without encryption both stand there, so the search above would find them', async () => {
  await using world = await fill({})
  for (const secret of [PAYLOAD, HEADER]) assert.notDeepEqual(filesWith(world, secret), [], secret)
})
