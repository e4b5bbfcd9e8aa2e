/** The command lines of guides and those of Iggy's own command line, word by word, each in a process of its own. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { runCommand, wordsOf } from '../../support/cli-runner.ts'
import { type EdgeProcess, startEdgeProcess } from '../../support/edge-process.ts'

/** Line, and what its output must hold. */
type Line = readonly [line: string, output: RegExp]

const GUIDE: readonly Line[] = [
  ['stream create orders', /stream "orders" created/],
  ['stream list', /orders/],
  ['stream get orders', /Name: +orders/],
  ['topic create --stream orders order-events --partitions 4', /topic "order-events" created.*partitions 4/],
  ['topic list --stream orders', /order-events +4/],
  ['topic stats --stream orders order-events', /Partitions: +4/],
  ['consumer-group create --stream orders --topic order-events processors', /"processors" created/],
  ['consumer-group list --stream orders --topic order-events', /processors/],
  [
    `message send --stream orders --topic order-events --partition-key cust-123 '{"event":"order.created"}'`,
    /1 message sent \(partition 1/,
  ],
  [
    'message poll --stream orders --topic order-events --consumer-group processors --strategy next --count 10',
    /json +\{"event":"order.created"\}/,
  ],
  ['consumer-group get --stream orders --topic order-events processors', /Members: +0/],
  ['offset get --stream orders --topic order-events --consumer-group processors --partition 1', /Stored offset: +0/],
  [
    'message poll --stream orders --topic order-events --consumer-group processors --strategy next --count 10',
    /^none$/m,
  ],
]

const OFFICIAL: readonly Line[] = [
  ['stream create orders', /created/],
  ['stream list', /orders/],
  ['stream get orders', /orders/],
  ['topic create orders order-events 4 none', /partitions 4/],
  ['topic list orders', /order-events/],
  ['topic get orders order-events', /Partitions: +4/],
  ['consumer-group create orders order-events processors', /created/],
  ['consumer-group list orders order-events', /processors/],
  ['consumer-group get orders order-events processors', /Members/],
  [`message send --message-key cust-123 orders order-events '{"event":"order.created"}'`, /partition 1/],
  ['message poll --next --message-count 10 --auto-commit --consumer 1 orders order-events 1', /order\.created/],
  [
    'consumer-offset get processors orders order-events 0 --kind consumer-group',
    /no offset of consumer group "processors" in partition 0 was found/,
  ],
]

for (const [column, lines] of [
  ['guides', GUIDE],
  ["Iggy's own command line", OFFICIAL],
] as const) {
  describe(`lines of ${column}`, () => {
    let folder = ''
    let edge: EdgeProcess
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'edge-cli-'))
      edge = await startEdgeProcess({ dataPath: join(folder, 'data') })
    })
    after(async () => {
      await edge[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    })

    for (const [line, output] of lines) {
      it(`iggy ${line}`, async () => {
        const environment = { IGGY_URL: edge.tcp, IGGY_USERNAME: 'iggy', IGGY_PASSWORD: 'iggy' }
        const { code, stdout, stderr } = await runCommand(wordsOf(line), environment)
        assert.equal(code, 0, stderr)
        assert.match(stdout, output)
      })
    }
  })
}
