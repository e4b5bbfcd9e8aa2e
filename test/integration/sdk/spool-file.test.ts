import assert from 'node:assert/strict'
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openSpoolFile } from '../../../src/sdk/index.ts'

async function spoolFolder(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'spool-'))
  context.after(() => rm(folder, { recursive: true }))
  return folder
}

const message = (id: bigint) => ({ id, originUs: 1n, payload: new Uint8Array(1024 * 1024) })

async function idsKept(path: string): Promise<readonly bigint[]> {
  const spool = await openSpoolFile(path)
  await spool.close()
  return spool.pending.map(({ id }) => id)
}

test('a spool file that is open is opened by nobody else, and left as it is', async (context) => {
  const path = join(await spoolFolder(context), 'unsent')
  const spool = await openSpoolFile(path)
  await spool.append(message(1n))
  await assert.rejects(openSpoolFile(path), { code: 'EDGE_STORE_IN_USE', message: /^spool file is in use by process/ })
  await spool.close()
  assert.deepEqual(await idsKept(path), [1n])
})

test('damage that is found while the spool is open makes no note count another message', async (context) => {
  const path = join(await spoolFolder(context), 'unsent')
  const spool = await openSpoolFile(path)
  for (let id = 1n; id <= 17n; id++) await spool.append(message(id))
  const bytes = await readFile(path)
  bytes[1_500_000] = 7
  await writeFile(path, bytes)
  // The file is large enough to be written anew.
  await assert.rejects(spool.acknowledged(1), { code: 'EDGE_BATCH_CORRUPT' })
  await spool.acknowledged(2)
  await spool.close()
  assert.equal((await idsKept(path))[0], 4n)
})

test('a note that the disk failed to take counts once, also when the file is written anew right behind it', async (context) => {
  const path = join(await spoolFolder(context), 'unsent')
  const spool = await openSpoolFile(path)
  for (let id = 1n; id <= 17n; id++) await spool.append(message(id))
  const handle = await open(path)
  const prototype: typeof handle = Object.getPrototypeOf(handle)
  await handle.close()
  const { datasync } = prototype
  let failing: Promise<void> | undefined
  let calls = 0
  context.mock.method(prototype, 'datasync', function (this: typeof handle) {
    calls += 1
    // While the first note is written the second comes: its bytes reach the file, and the disk says no.
    if (calls === 1) failing = assert.rejects(spool.acknowledged(1), { code: 'EDGE_IO' })
    return calls === 2 ? Promise.reject(new Error('EIO')) : datasync.call(this)
  })
  await spool.acknowledged(1)
  await failing
  await spool.append(message(18n))
  await spool.close()
  assert.deepEqual((await idsKept(path)).slice(0, 2), [3n, 4n])
})
