/**
 * A consumer group of real processes under load: members that come, go, freeze and die, and an edge that is killed. Nothing
 * is lost, nothing is read by two while nobody dies, and partitions are dealt out again in time.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { type Client, connect } from '../../src/sdk/index.ts'
import { type EdgeProcess, startEdgeProcess } from '../support/edge-process.ts'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { SeededRandom } from '../support/seeded-random.ts'

const PARTITIONS = 8
const MEMBERS = 4
const MEMBER = new URL('../support/group-member.ts', import.meta.url).pathname
/** The least that a machine under load keeps: pings of idle members come every second. */
const HEARTBEAT_MS = 4000

const partitionsOf = async (admin: Client): Promise<readonly (readonly number[])[]> =>
  ((await admin.groups.get('plant', 'readings', 'workers'))?.members ?? []).map(({ partitions }) => partitions)

/** Whether so many members share all partitions evenly. */
async function isSplitAmong(admin: Client, count: number): Promise<boolean> {
  const split = await partitionsOf(admin)
  const sizes = split.map(({ length }) => length)
  return (
    split.length === count && new Set(split.flat()).size === PARTITIONS && Math.max(...sizes) - Math.min(...sizes) <= 1
  )
}

class Member {
  readonly process: ChildProcess
  #onRead: (line: string) => void

  constructor(url: string, onRead: (line: string) => void) {
    this.#onRead = onRead
    const words = ['--disable-warning=ExperimentalWarning', MEMBER, url, 'plant', 'readings', 'workers']
    this.process = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] })
    assert.ok(this.process.stdout !== null)
    createInterface({ input: this.process.stdout }).on('line', (line) => this.#onRead(line))
  }

  signal(name: NodeJS.Signals): void {
    this.process.kill(name)
  }

  /** Resolves when the process and its output have ended. */
  async end(name: NodeJS.Signals): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    const closed = once(this.process, 'close')
    this.process.kill(name)
    await closed
  }
}

interface World {
  edge: EdgeProcess
  readonly admin: Client
  /** How often each message was read, by payload. */
  readonly reads: Map<string, number>
  startMember(): Member
  /** Sends numbered messages to all partitions in turn until told to stop. @returns how many were acked. */
  startLoad(): { stop(): Promise<number> }
  restartEdge(): Promise<void>
}

async function startWorld(context: TestContext): Promise<World> {
  const dataPath = mkdtempSync(join(tmpdir(), 'edge-groups-'))
  const environment = {
    EDGE_TCP__ADDRESS: `127.0.0.1:${await freePort()}`,
    EDGE_WEBTRANSPORT__ENABLED: 'false',
    EDGE_HEARTBEAT__INTERVAL: `${HEARTBEAT_MS}ms`,
  }
  const start = () => startEdgeProcess({ dataPath, environment })
  const members: Member[] = []
  const reads = new Map<string, number>()
  const edge = await start()
  const url = `iggy://iggy:iggy@${edge.tcp}?heartbeat_interval=1s`
  const admin = await connect(url)
  await admin.streams.create('plant')
  await admin.topics.create('plant', 'readings', { partitions: PARTITIONS })
  await admin.groups.create('plant', 'readings', 'workers')
  const world: World = {
    edge,
    admin,
    reads,
    startMember() {
      const member = new Member(url, (line) => {
        const payload = line.split(' ')[2] ?? line
        reads.set(payload, (reads.get(payload) ?? 0) + 1)
      })
      members.push(member)
      return member
    },
    startLoad() {
      let isOn = true
      const run = async (): Promise<number> => {
        const client = await connect(url)
        let count = 0
        while (isOn) {
          const at = { kind: 'partition', partitionId: count % PARTITIONS } as const
          const messages = Array.from({ length: 5 }, (_, index) => ({
            payload: new TextEncoder().encode(`${count}.${index}`),
          }))
          await client.messages.send('plant', 'readings', at, messages)
          count++
          await delay(5)
        }
        await client.close()
        return count * 5
      }
      const done = run()
      return {
        stop() {
          isOn = false
          return done
        },
      }
    },
    async restartEdge() {
      await world.edge.kill()
      world.edge = await start()
    },
  }
  context.after(async () => {
    await Promise.all(members.map((member) => member.end('SIGKILL')))
    await admin.close()
    await world.edge.kill()
    rmSync(dataPath, { recursive: true, force: true })
  })
  return world
}

/** Resolves with the ms it took. */
async function within(timeoutMs: number, what: string, isTrue: () => Promise<boolean>): Promise<number> {
  const startedMs = performance.now()
  await eventually(isTrue, what, timeoutMs)
  return performance.now() - startedMs
}

test('members that join and leave under load share the partitions within 2 s, and no message is read twice or lost', async (context) => {
  const world = await startWorld(context)
  const { admin, reads } = world
  const load = world.startLoad()
  const members: Member[] = []
  for (let count = 1; count <= MEMBERS; count++) {
    members.push(world.startMember())
    await within(10_000, `member ${count} joins`, async () => (await partitionsOf(admin)).length === count)
    await within(2000, `${count} members share`, () => isSplitAmong(admin, count))
  }
  for (let count = MEMBERS - 1; count >= 2; count--) {
    const left = members.shift()?.end('SIGTERM')
    await within(10_000, `a member leaves`, async () => (await partitionsOf(admin)).length === count)
    await within(2000, `${count} members share`, () => isSplitAmong(admin, count))
    await left
  }
  const sent = await load.stop()
  await within(10_000, 'all are read', async () => reads.size === sent)
  await Promise.all(members.map((member) => member.end('SIGTERM')))
  const twice = [...reads].filter(([, count]) => count > 1)
  assert.deepEqual(twice, [], `of ${sent} messages`)
})

test('a frozen member loses its partitions within the heartbeat timeout, and comes back when it runs again', async (context) => {
  const world = await startWorld(context)
  const { admin, reads } = world
  const load = world.startLoad()
  const members = Array.from({ length: MEMBERS }, () => world.startMember())
  await within(15_000, 'four members share', () => isSplitAmong(admin, MEMBERS))
  members[0]?.signal('SIGSTOP')
  // 1.2 intervals of silence, and a look at it every second.
  await within(HEARTBEAT_MS * 1.2 + 2000, 'three members share', () => isSplitAmong(admin, MEMBERS - 1))
  members[0]?.signal('SIGCONT')
  await within(10_000, 'four members share again', () => isSplitAmong(admin, MEMBERS))
  const sent = await load.stop()
  await within(10_000, 'all are read', async () => reads.size === sent)
})

test('nothing is lost while members are killed at random under load', async (context) => {
  const world = await startWorld(context)
  const { admin, reads } = world
  const random = new SeededRandom(Number(process.env.SEED ?? 7))
  const load = world.startLoad()
  const members = Array.from({ length: MEMBERS }, () => world.startMember())
  await within(15_000, 'four members share', () => isSplitAmong(admin, MEMBERS))
  for (let kill = 0; kill < 6; kill++) {
    await delay(random.below(400))
    const index = random.below(MEMBERS)
    await members[index]?.end('SIGKILL')
    await within(2000, 'the others share', () => isSplitAmong(admin, MEMBERS - 1))
    members[index] = world.startMember()
    await within(10_000, 'a new one shares too', () => isSplitAmong(admin, MEMBERS))
  }
  const sent = await load.stop()
  await within(10_000, 'all are read', async () => reads.size === sent)
})

test('members are back within 6 s after the edge was killed and started again, and read everything', async (context) => {
  const world = await startWorld(context)
  const { admin, reads } = world
  for (let count = 0; count < MEMBERS; count++) world.startMember()
  await within(15_000, 'four members share', () => isSplitAmong(admin, MEMBERS))
  const before = world.startLoad()
  // Half a second of load.
  await delay(500)
  const sentBefore = await before.stop()
  await world.restartEdge()
  const tookMs = await within(6000, 'four members share again', () => isSplitAmong(admin, MEMBERS))
  context.diagnostic(`back after ${Math.round(tookMs)} ms`)
  await within(10_000, 'all are read', async () => reads.size === sentBefore)
})
