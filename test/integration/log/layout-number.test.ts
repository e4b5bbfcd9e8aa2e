/** The number of SQLite's layout, which no checksum guards. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { UserRow } from '../../../src/log/api.ts'
import { inspectDatabase } from '../../../src/log/metadata/integrity.ts'
import { openMetadata, type SqliteMetadata } from '../../../src/log/metadata/metadata-store.ts'
import { systemScheduler } from '../../../src/log/scheduler.ts'

/** Of `user_version`, in the file's header. */
const LAYOUT_NUMBER_AT = 60
const USER: UserRow = {
  id: 0,
  username: 'ada',
  passwordHash: '$argon2id$x',
  isActive: true,
  createdAtUs: 1_700_000_000_000_000n,
  permissionsJson: null,
}

test('a flipped bit in the number of the layout is told from a newer release, and put right', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'edge-layout-number-'))
  context.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'metadata.sqlite')
  const findings: string[] = []
  const report = ({ event }: { readonly event: string }): void => void findings.push(event)
  const setAside = (): never => assert.fail('it is not damaged')
  const open = (): SqliteMetadata => openMetadata({ path, scheduler: systemScheduler, report, setAside })
  const store = open()
  await store.putUser({ ...USER, id: 0 })
  store.close()
  const sound = readFileSync(path)
  for (let bit = 0; bit < 32; bit++) {
    findings.length = 0
    const flipped = Buffer.from(sound)
    const at = LAYOUT_NUMBER_AT + (bit >> 3)
    flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << (bit & 7)), at)
    writeFileSync(path, flipped)
    assert.equal(inspectDatabase(path).isNewer, false)
    assert.match(inspectDatabase(path).problems.join(), /its tables are those of layout 1/)
    const again = open()
    assert.equal(again.users.size, 1, `bit ${bit}`)
    again.close()
    assert.deepEqual(findings, ['log.metadata.mended'], `bit ${bit}`)
    assert.deepEqual(inspectDatabase(path).problems, [])
  }
})
