/**
 * The main program of the executable: runs the parts of the program, which lie in it as assets, each when it is asked for.
 *
 * Node keeps compiled code only as it is before a program runs, without all functions that are compiled when they are first
 * called: a third of what a start takes. Here each part has the code that V8 held after a start (`compiled-code.ts`).
 */
import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Script } from 'node:vm'
import { MAIN_PART, partScript } from '../../src/runtime/executable/program-parts.ts'
import { RECORD_FOLDER_VARIABLE, RECORD_SIGNAL } from './recorder.ts'

/** Set by the build: whether this is the program that is run once to record its compiled code. */
declare const IS_RECORDER: boolean

interface Module {
  exports: unknown
}
type Run = (
  exports: unknown,
  require: (name: string) => unknown,
  module: Module,
  fileName: string,
  folderName: string,
) => void

const modules = new Map<string, Module>()
const scripts = new Map<string, Script>()

function load(name: string): unknown {
  if (!name.startsWith('./')) return require(name)
  const part = name.slice('./'.length)
  const known = modules.get(part)
  if (known !== undefined) return known.exports
  const module: Module = { exports: {} }
  modules.set(part, module)
  const script = partScript(part)
  if (IS_RECORDER) scripts.set(part, script)
  const run: Run = script.runInThisContext()
  run(module.exports, load, module, process.execPath, dirname(process.execPath))
  return module.exports
}

if (IS_RECORDER) {
  process.once(RECORD_SIGNAL, () => {
    const folder = process.env[RECORD_FOLDER_VARIABLE] ?? ''
    for (const [part, script] of scripts) writeFileSync(join(folder, part), script.createCachedData())
    process.exit(0)
  })
}
load(`./${MAIN_PART}`)
