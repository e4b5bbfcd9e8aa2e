/** Random changes of streams and topics on a disk that loses power at random; SQLite starts empty each time. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Partition } from '../../src/log/api.ts'
import type { StoreCatalog } from '../../src/log/catalog/catalog.ts'
import { RECOVERED_OPTIONS } from '../../src/log/catalog/scan.ts'
import { FlashUse } from '../../src/log/flash-use.ts'
import { type Names, openNames } from '../../src/log/names.ts'
import { LOG_SETTINGS } from '../../src/log/settings.ts'
import { defaultsOf } from '../../src/setting.ts'
import { streamAt, topicAt } from '../support/by-number.ts'
import { PowerCutDisk, PowerLost } from '../support/power-cut-disk.ts'
import { SeededRandom } from '../support/seeded-random.ts'

const SEEDS = 60
const CUTS_PER_SEED = 8
const CHANGES_PER_LIFE = 10

class World {
  readonly disk: PowerCutDisk
  readonly random: SeededRandom
  readonly findings: string[] = []
  /** Every key the engine ever saw, with the partition it stood for. */
  readonly keys = new Map<number, string>()
  tasks: (() => void)[] = []
  #lives = 0
  #timeUs = 0n

  constructor(seed: number) {
    this.random = new SeededRandom(seed)
    this.disk = new PowerCutDisk(this.random.next)
  }

  async open(): Promise<Names> {
    this.tasks = []
    this.#lives++
    const names = await openNames({
      fileSystem: this.disk,
      metadataPath: ':memory:',
      clock: { wallUs: () => ++this.#timeUs, monotonicUs: () => 0 },
      scheduler: { nextTurn: (task) => task(), after: (_delay, task) => this.#later(task) },
      report: ({ event, text }) => this.findings.push(`${event}: ${text}`),
      settings: defaultsOf(LOG_SETTINGS),
      flash: new FlashUse(0, { wallUs: () => 0n, monotonicUs: () => 0 }),
      expectExisting: this.#lives > 1 && this.disk.list('').some(({ name }) => name === 'store.json'),
    })
    const host = {
      addPartition: (spec: { key: number; createdAtUs: bigint; directory: string }) => {
        const place = `${spec.createdAtUs}`
        assert.equal(this.keys.get(spec.key) ?? place, place, `key ${spec.key} stands for one partition for ever`)
        this.keys.set(spec.key, place)
        this.disk.makeDirectory(spec.directory)
        return { ...spec } as unknown as Partition
      },
      removePartition() {},
      updateOptions() {},
    }
    names.catalog.attach(host, () => undefined)
    return names
  }

  #later(task: () => void): () => void {
    this.tasks.push(task)
    return () => {
      this.tasks = this.tasks.filter((other) => other !== task)
    }
  }
}

/** What clients were told: stream and topic names, partition counts and floors, by id. */
type State = Map<number, { name: string; topics: Map<number, { name: string; floors: bigint[] }> }>

function stateOf(catalog: StoreCatalog): State {
  const floors = new Map(catalog.specs().map(({ key, floorOffset }) => [key, floorOffset]))
  return new Map(
    [...catalog.streams.values()].map(({ id, name, topics }) => [
      id,
      {
        name,
        topics: new Map(
          [...topics.values()].map((topic) => [
            topic.id,
            { name: topic.name, floors: topic.partitions.map(({ key }) => floors.get(key) ?? 0n) },
          ]),
        ),
      },
    ]),
  )
}

/** A change, to be made to the model and to the catalog. */
interface Change {
  readonly model: (state: State) => void
  readonly run: (catalog: StoreCatalog) => Promise<unknown>
}

function pickChange(random: SeededRandom, state: State): Change {
  const name = `n${random.below(1e9)}`
  const streamId = pick(random, state)
  if (streamId === undefined || random.chance(0.15)) {
    return {
      model: (next) => next.set(lowestFree(next), { name, topics: new Map() }),
      run: (catalog) => catalog.createStream(name),
    }
  }
  const topics = state.get(streamId)?.topics ?? new Map()
  const topicId = pick(random, topics)
  if (topicId === undefined || random.chance(0.3)) {
    const partitionCount = random.chance(0.1) ? 70 : random.below(4)
    return {
      model: (next) => {
        const own = next.get(streamId)?.topics
        own?.set(lowestFree(own), { name, floors: Array(partitionCount).fill(0n) })
      },
      run: (catalog) =>
        catalog.createTopic(streamAt(catalog, streamId), { name, partitionCount, options: RECOVERED_OPTIONS }),
    }
  }
  const changes = [...streamChanges(streamId, name), ...topicChanges(random, streamId, topicId, name)]
  return changes[random.below(changes.length)] as Change
}

function streamChanges(streamId: number, name: string): Change[] {
  return [
    {
      model: (next) => next.set(streamId, { topics: new Map(), ...next.get(streamId), name }),
      run: (catalog) => catalog.renameStream(streamAt(catalog, streamId), name),
    },
    { model: (next) => next.delete(streamId), run: (catalog) => catalog.deleteStream(streamAt(catalog, streamId)) },
  ]
}

function topicChanges(random: SeededRandom, streamId: number, topicId: number, name: string): Change[] {
  const topicOf = (next: State) => next.get(streamId)?.topics.get(topicId) ?? { name, floors: [] }
  const set = (next: State, topic: { name: string; floors: bigint[] }) => next.get(streamId)?.topics.set(topicId, topic)
  const floor = BigInt(random.below(1000))
  return [
    {
      model: (next) => set(next, { ...topicOf(next), name }),
      run: (catalog) => catalog.updateTopic(topicAt(catalog, streamId, topicId), { name }),
    },
    {
      model: (next) => next.get(streamId)?.topics.delete(topicId),
      run: (catalog) => catalog.deleteTopic(topicAt(catalog, streamId, topicId)),
    },
    {
      model: (next) => set(next, { ...topicOf(next), floors: [...topicOf(next).floors, 0n, 0n] }),
      run: (catalog) => catalog.addPartitions(topicAt(catalog, streamId, topicId), 2),
    },
    {
      model: (next) => set(next, { ...topicOf(next), floors: topicOf(next).floors.slice(0, -1) }),
      run: async (catalog) => {
        const isEmpty = catalog.topic(streamId, topicId)?.partitions.length === 0
        if (!isEmpty) await catalog.removePartitions(topicAt(catalog, streamId, topicId), 1)
      },
    },
    {
      model: (next) => {
        const [first, ...others] = topicOf(next).floors
        if (first !== undefined) set(next, { ...topicOf(next), floors: [first > floor ? first : floor, ...others] })
      },
      run: async (catalog) => {
        const key = catalog.topic(streamId, topicId)?.partitions[0]?.key
        if (key !== undefined) await catalog.raiseFloors(new Map([[key, floor]]))
      },
    },
  ]
}

function pick(random: SeededRandom, map: ReadonlyMap<number, unknown>): number | undefined {
  return [...map.keys()][random.below(Math.max(1, map.size))]
}

function lowestFree(map: ReadonlyMap<number, unknown>): number {
  for (let id = 0; ; id++) if (!map.has(id)) return id
}

/** Maps by id, whatever the order. */
function textOf(state: State): string {
  const streams = [...state].sort(([a], [b]) => a - b)
  const plain = streams.map(([id, { name, topics }]) => [id, name, [...topics].sort(([a], [b]) => a - b)])
  return JSON.stringify(plain, (_key, value) => (typeof value === 'bigint' ? String(value) : value))
}

/** Makes changes until the power goes. @returns what may be found afterwards: the last answered state, or one more change. */
async function live(world: World, names: Names): Promise<string[]> {
  let answered = stateOf(names.catalog)
  for (let count = 0; count < CHANGES_PER_LIFE; count++) {
    const change = pickChange(world.random, answered)
    const next = structuredClone(answered)
    change.model(next)
    try {
      await change.run(names.catalog)
      if (world.random.chance(0.3)) world.tasks.shift()?.()
    } catch (error) {
      if (!(error instanceof PowerLost)) throw error
      return [textOf(answered), textOf(next)]
    }
    assert.equal(textOf(stateOf(names.catalog)), textOf(next))
    answered = next
  }
  return [textOf(answered)]
}

test('whatever was answered survives every power cut, nothing half-made appears and no key is given twice', async () => {
  let cutInChange = 0
  for (let seed = 1; seed <= SEEDS; seed++) {
    const world = new World(seed)
    let expected = [textOf(new Map())]
    for (let cut = 0; cut < CUTS_PER_SEED; cut++) {
      const label = `seed ${seed}, cut ${cut}`
      if (world.random.chance(0.3)) world.disk.callsLeft = world.random.below(12)
      try {
        const names = await world.open()
        world.disk.callsLeft = Number.POSITIVE_INFINITY
        const found = textOf(stateOf(names.catalog))
        assert.ok(expected.includes(found), `${label}: found ${found}, expected one of ${expected.join(' or ')}`)
        world.disk.callsLeft = world.random.below(80)
        expected = await live(world, names)
        if (expected.length > 1) cutInChange++
      } catch (error) {
        // The power went while it was opened: what may be found is as before.
        if (!(error instanceof PowerLost)) throw error
      }
      world.disk.powerCut()
      assert.deepEqual(world.findings, [], label)
    }
  }
  assert.ok(cutInChange > SEEDS, `${cutInChange} cuts fell into a change`)
})
