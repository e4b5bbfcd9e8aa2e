/** Bytes beside journal and segments, measured by names. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FileSystem } from '../../../src/log/io/file-system.ts'
import { SideFiles } from '../../../src/log/side-files.ts'

const clock = { wallUs: () => 0n, monotonicUs: () => 0 }

test('the database, its side files, the offset trail and quarantine count', () => {
  const sizes: Readonly<Record<string, number>> = {
    'metadata.sqlite': 1,
    'metadata.sqlite-wal': 10,
    'metadata.sqlite-shm': 100,
    'metadata.sqlite-offsets': 1000,
    'quarantine/a': 10_000,
    'journal/0': 1_000_000,
  }
  const folders: Readonly<Record<string, readonly string[]>> = { quarantine: ['a'] }
  const fileSystem: Pick<FileSystem, 'sizeOf' | 'list'> = {
    sizeOf: (path) => sizes[path] ?? 0,
    list: (path) => (folders[path] ?? []).map((name) => ({ name, isDirectory: `${path}/${name}` in folders })),
  }
  assert.equal(new SideFiles(fileSystem, clock).sizeBytes, 11_111)
})
