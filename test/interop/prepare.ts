/**
 * Downloads and compiles every client ahead of the tests: `node test/interop/prepare.ts`. What is there already is left
 * alone; what cannot be made is named, and its tests will be skipped for that reason. Compiling stops when
 * EDGE_INTEROP_BUDGET_MINUTES are over.
 */
import { readArguments } from '../../scripts/arguments.ts'
import { CLIENT_RUNS } from './client-catalog.ts'
import { PREPARATIONS } from './toolchain/preparations.ts'

readArguments('node test/interop/prepare.ts', {})
const wanted = new Map(CLIENT_RUNS.map(({ client, version }) => [`${client} ${version}`, { client, version }]))
for (const [name, { client, version }] of wanted) {
  const started = Date.now()
  try {
    await PREPARATIONS[client]?.(version)
    console.log(`${name}: ready after ${Math.round((Date.now() - started) / 1000)} s`)
  } catch (error) {
    console.log(`${name}: ${(error as Error).message}`)
  }
}
