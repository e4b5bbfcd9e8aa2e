/** The process stops between any two steps of a change. */
import assert from 'node:assert/strict'
import { cpSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import type { StoreCatalog } from '../../../src/log/catalog/catalog.ts'
import type { FileSystem, LogFile } from '../../../src/log/io/file-system.ts'
import { streamAt, topicAt } from '../../support/by-number.ts'
import { CatalogWorld, fillStore, OPTIONS, seen } from '../../support/catalog-world.ts'

const world = new CatalogWorld()

beforeEach(() => world.create())
afterEach(() => world.destroy())

class Stopped extends Error {}

/** A stopped process loses nothing that the kernel has: syncs are counted as steps and not made. Passes calls on until `left` changing calls were made; then it behaves as if the process were gone. */
function stopping(inner: FileSystem, left: { calls: number }): FileSystem {
  const step = () => {
    if (left.calls-- <= 0) throw new Stopped('stopped')
  }
  const stoppingFile = (file: LogFile): LogFile => ({
    size: () => file.size(),
    read: (target, position) => file.read(target, position),
    readAtHand: () => false,
    readLater: (target, position) => file.readLater(target, position),
    write(bytes, position) {
      step()
      // The last write of a process may be cut anywhere.
      if (left.calls === 0) file.write(bytes.subarray(0, bytes.length >> 1), position)
      else file.write(bytes, position)
    },
    datasync(done) {
      step()
      setImmediate(done, null)
    },
    truncate: (size) => file.truncate(size),
    close: () => file.close(),
  })
  return {
    list: (path) => inner.list(path),
    open(path, mode) {
      if (mode === 'create') step()
      return stoppingFile(inner.open(path, mode))
    },
    makeDirectory(path) {
      step()
      inner.makeDirectory(path)
    },
    rename(from, to) {
      step()
      inner.rename(from, to)
    },
    unlink(path) {
      step()
      inner.unlink(path)
    },
    removeDirectory(path) {
      step()
      inner.removeDirectory(path)
    },
    async syncDirectory() {
      step()
    },
    space: () => inner.space(),
    sizeOf: (path) => inner.sizeOf(path),
    identity: (path) => inner.identity(path),
    lock: (path) => inner.lock(path),
  }
}

const CHANGES: Record<string, (catalog: StoreCatalog) => Promise<unknown>> = {
  createStream: (catalog) => catalog.createStream('new'),
  // A restart skips to the key floor, so this one has to raise it.
  createTopic: (catalog) =>
    catalog.createTopic(streamAt(catalog, 0), { name: 'new', partitionCount: 2, options: OPTIONS }),
  renameStream: (catalog) => catalog.renameStream(streamAt(catalog, 0), 'renamed'),
  updateTopic: (catalog) =>
    catalog.updateTopic(topicAt(catalog, 0, 0), { name: 'renamed', options: { ...OPTIONS, messageExpiryUs: 9n } }),
  addPartitions: (catalog) => catalog.addPartitions(topicAt(catalog, 0, 0), 2),
  removePartitions: (catalog) => catalog.removePartitions(topicAt(catalog, 0, 0), 2),
  deleteTopic: (catalog) => catalog.deleteTopic(topicAt(catalog, 0, 0)),
  deleteStream: (catalog) => catalog.deleteStream(streamAt(catalog, 0)),
  raiseFloors: (catalog) =>
    catalog.raiseFloors(
      new Map([
        [1, 5n],
        [2, 7n],
      ]),
    ),
}

for (const [name, change] of Object.entries(CHANGES)) {
  test(`a stop after any step of ${name} leaves the state before or after it, and keys are not given twice`, async () => {
    const first = await world.open()
    await fillStore(first)
    const before = JSON.stringify(seenAndFloors(first.catalog), bigintText)
    await first.close()
    const original = `${world.folder}-original`
    cpSync(world.folder, original, { recursive: true })
    let after = ''
    const results = new Set<string>()
    for (let calls = 0; calls < 200; calls++) {
      rmSync(world.folder, { recursive: true })
      cpSync(original, world.folder, { recursive: true })
      world.nowUs = 1_800_000_000_000_000n
      const left = { calls: Number.POSITIVE_INFINITY }
      const store = await world.open(stopping(world.fileSystem(), left))
      const usedKeys = new Set(store.host.specs.keys())
      left.calls = calls
      const isDone = await change(store.catalog).then(
        () => true,
        () => false,
      )
      for (const key of store.host.specs.keys()) usedKeys.add(key)
      // What a killed process had in memory is gone; closing SQLite adds nothing that its transactions had not written.
      world.opened.pop()
      store.metadata.close()
      world.tasks = []
      world.findings = []
      left.calls = Number.POSITIVE_INFINITY
      const again = await world.open(stopping(world.fileSystem(), left))
      const state = JSON.stringify(seenAndFloors(again.catalog), bigintText)
      results.add(state)
      const mark = await again.catalog.createTopic(streamAt(again.catalog, 1), {
        name: 'mark',
        partitionCount: 1,
        options: OPTIONS,
      })
      assert.ok(!usedKeys.has(mark.partitions[0]?.key ?? 0), `key given twice after ${calls} steps`)
      assert.deepEqual(world.findings, [], `after ${calls} steps`)
      world.drain()
      assert.deepEqual(readdirSync(join(world.folder, 'staging')), [])
      assert.deepEqual(readdirSync(join(world.folder, 'trash')), [])
      await again.close()
      world.opened.pop()
      if (isDone) {
        after = state
        break
      }
    }
    rmSync(original, { recursive: true })
    assert.notEqual(after, '', 'the change got through in the end')
    assert.notEqual(after, before)
    assert.deepEqual([...results].sort(), [before, after].sort())
  })
}

function seenAndFloors(catalog: StoreCatalog) {
  return { streams: seen(catalog), floors: catalog.specs().map(({ key, floorOffset }) => [key, floorOffset]) }
}

function bigintText(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}
