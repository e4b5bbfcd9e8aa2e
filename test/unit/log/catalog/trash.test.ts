/** Removing what was deleted: a few files a turn, whatever their number, and what came meanwhile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TRASH } from '../../../../src/log/catalog/layout.ts'
import { Trash } from '../../../../src/log/catalog/trash.ts'
import type { FileSystem } from '../../../../src/log/io/file-system.ts'
import { SeededRandom } from '../../../support/seeded-random.ts'
import { SimDisk } from '../../../support/sim-disk.ts'

const FILES = 400

function createWorld() {
  const { fileSystem } = new SimDisk(new SeededRandom(1), 1 << 20).mount({ later: () => {} })
  const tasks: (() => void)[] = []
  let listedCount = 0
  const counted: FileSystem = {
    ...fileSystem,
    list(path) {
      const entries = fileSystem.list(path)
      listedCount += entries.length
      return entries
    },
  }
  const folderOf = (name: string): void => {
    fileSystem.makeDirectory(`streams/${name}`)
    for (let file = 0; file < FILES; file++) fileSystem.open(`streams/${name}/${file}`, 'create').close()
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
  return { fileSystem, trash, folderOf, turn, listedCount: () => listedCount }
}

test('a folder of many files is listed once, and its files go a few at a time', () => {
  const { fileSystem, trash, folderOf, turn, listedCount } = createWorld()
  folderOf('0')
  trash.take('streams/0')
  trash.startRemoval()
  let turns = 0
  while (turn()) assert.ok(++turns < FILES, 'it never ends')
  assert.deepEqual(fileSystem.list(TRASH), [])
  assert.ok(turns > FILES / 10, `${turns} turns`)
  assert.ok(listedCount() < 2 * FILES, `${listedCount()} names were listed`)
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
