import assert from 'node:assert/strict'
import type { NetworkInterfaceInfo } from 'node:os'
import { type TestContext, test } from 'node:test'
import { NetworkWatch } from '../../../../src/sync/io/network-watch.ts'

type Interfaces = () => NodeJS.Dict<NetworkInterfaceInfo[]>

const INTERVAL_MS = 2000
const FAILS: Interfaces = () => {
  throw new Error('EMFILE')
}
const at = (address: string): Interfaces => {
  return () => ({ eth0: [{ address, family: 'IPv4', netmask: '', mac: '', internal: false, cidr: null }] })
}

/** @returns how often a change was told at each look. */
function looks(context: TestContext, first: Interfaces, later: readonly Interfaces[]): number[] {
  context.mock.timers.enable({ apis: ['setInterval'] })
  let interfaces = first
  let changes = 0
  let ticks = 0
  const watch = new NetworkWatch({
    intervalMs: INTERVAL_MS,
    clock: { monotonicUs: () => 0, wallUs: () => 0n },
    onChange: () => void changes++,
    onTick: () => void ticks++,
    interfaces: () => interfaces(),
  })
  const told = later.map((each) => {
    interfaces = each
    context.mock.timers.tick(INTERVAL_MS)
    return changes
  })
  watch.close()
  assert.equal(ticks, later.length)
  return told
}

test('an address that comes or goes is told once', (context) => {
  const [before, after] = [at('192.0.2.1'), at('192.0.2.2')]
  assert.deepEqual(looks(context, before, [before, after, after]), [0, 1, 1])
})

test('a system that does not tell its addresses is looked at again, and what it hid is told then', (context) => {
  const [before, after] = [at('192.0.2.1'), at('192.0.2.2')]
  assert.deepEqual(looks(context, before, [FAILS, before, FAILS, after]), [0, 0, 0, 1])
})

test('where it never tells them, links are watched all the same', (context) => {
  assert.deepEqual(looks(context, FAILS, [FAILS, FAILS]), [0, 0])
})
