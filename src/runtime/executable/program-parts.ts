/** How the program lies in the executable: parts, each with its compiled code where the build could record it. */
import { Script } from 'node:vm'

/** Name of the part that the program begins with. */
export const MAIN_PART = 'main.js'
/** Begin the names of the assets that are parts of the program, and of those that are compiled code. */
export const PART_PREFIX = 'program/'
export const CODE_PREFIX = 'compiled/'

/** They never change, and to list them takes longer than to find one of them. */
let assetNames: ReadonlySet<string> | undefined

/** Only in the executable. V8 takes compiled code for the same text, version and flags; else it compiles. */
export function partScript(part: string): Script {
  const { getAssetKeys, getRawAsset } = process.getBuiltinModule('node:sea')
  const text = Buffer.from(getRawAsset(`${PART_PREFIX}${part}`)).toString('latin1')
  const name = `${CODE_PREFIX}${part}`
  assetNames ??= new Set(getAssetKeys())
  if (!assetNames.has(name)) return new Script(text, { filename: part })
  return new Script(text, { filename: part, cachedData: Buffer.from(getRawAsset(name)) })
}

/** Of how many parts compiled code is there, and of how many V8 takes it; none outside of the executable. */
export function compiledParts(): { recorded: number; taken: number } {
  const { getAssetKeys, isSea } = process.getBuiltinModule('node:sea')
  if (!isSea()) return { recorded: 0, taken: 0 }
  const recorded = getAssetKeys().filter((name) => name.startsWith(CODE_PREFIX))
  const taken = recorded.filter((name) => partScript(name.slice(CODE_PREFIX.length)).cachedDataRejected === false)
  return { recorded: recorded.length, taken: taken.length }
}
