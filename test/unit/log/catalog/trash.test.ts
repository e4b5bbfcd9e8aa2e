/** Removing what was deleted: a few files a turn, whatever their number, and what came meanwhile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TRASH } from '../../../../src/log/catalog/layout.ts'
import { Trash } from '../../../../src/log/catalog/trash.ts'
import type { FileSystem } from '../../../../src/log/io/file-system.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'
import { SimDisk } from '../../../support/sim-disk.ts'

const FILES = 400

function createWorld(fileSystem = new SimDisk(new SeededRandom(1), 1 << 20).mount({ later: () => {} }).fileSystem) {
  const tasks: (() => void)[] = []
  let listedCount = 0
  let lookedCount = 0
  const counted: FileSystem = {
    ...fileSystem,
    list(path) {
      const entries = fileSystem.list(path)
      listedCount += entries.length
      return entries
    },
    sizeOf(path) {
      lookedCount++
      return fileSystem.sizeOf(path)
    },
  }
  const folderOf = (name: string, fileSize = 0): void => {
    fileSystem.makeDirectory(`streams/${name}`)
    for (let file = 0; file < FILES; file++) {
      const handle = fileSystem.open(`streams/${name}/${file}`, 'create')
      handle.write(new Uint8Array(fileSize), 0)
      handle.close()
    }
  }
  fileSystem.makeDirectory(TRASH)
  const scheduler = {
    nextTurn: (task: () => void) => void tasks.push(task),
    after: (_milliseconds: number, task: () => void) => {
      tasks.push(task)
      return () => {}
    },
  }
  const trash = new Trash({ fileSystem: counted, scheduler, report: () => assert.fail('nothing fails') })
  const turn = (): boolean => {
    const due = tasks.splice(0)
    for (const task of due) task()
    return due.length > 0
  }
  return { fileSystem, trash, folderOf, turn, listedCount: () => listedCount, looked: () => lookedCount }
}

test('a folder of many files is listed once to be measured and once to be removed, and its files go a few at a time', () => {
  const { fileSystem, trash, folderOf, turn, listedCount } = createWorld()
  folderOf('0')
  trash.take('streams/0')
  trash.startRemoval()
  let turns = 0
  while (turn()) assert.ok(++turns < FILES, 'it never ends')
  assert.deepEqual(fileSystem.list(TRASH), [])
  assert.ok(turns > FILES / 10, `${turns} turns`)
  assert.ok(listedCount() < 3 * FILES, `${listedCount()} names were listed`)
})

test('what lies here is measured a few files at a time, also what an earlier start left, and counted until it is gone', () => {
  const { fileSystem, trash, folderOf, turn, looked } = createWorld()
  folderOf('0', 10)
  trash.take('streams/0')
  assert.deepEqual([looked(), trash.sizeBytes], [0, 0], 'the name alone was changed')
  trash.startRemoval()
  let most = 0
  for (let turns = 0; ; turns++) {
    const before = looked()
    if (!turn()) break
    most = Math.max(most, trash.sizeBytes)
    assert.ok(looked() - before <= 64, `${looked() - before} files were looked at in one turn`)
    assert.ok(turns < FILES, 'it never ends')
  }
  // The first go in the turn that sees the last.
  assert.ok(most > FILES * 9, `${most} bytes`)
  assert.equal(trash.sizeBytes, 0)

  folderOf('1', 10)
  fileSystem.rename('streams/1', `${TRASH}/7`)
  const next = createWorld(fileSystem)
  next.trash.startRemoval()
  for (let turns = 0; turns < 8; turns++) next.turn()
  assert.ok(next.trash.sizeBytes > 0 && next.trash.sizeBytes <= FILES * 10, `${next.trash.sizeBytes} bytes`)
})

test('what is thrown away while others are removed goes as well', () => {
  const { fileSystem, trash, folderOf, turn } = createWorld()
  folderOf('0')
  folderOf('1')
  trash.take('streams/0')
  trash.startRemoval()
  turn()
  turn()
  trash.take('streams/1')
  trash.startRemoval()
  for (let turns = 0; turn(); turns++) assert.ok(turns < FILES, 'it never ends')
  assert.deepEqual(fileSystem.list(TRASH), [])
})
