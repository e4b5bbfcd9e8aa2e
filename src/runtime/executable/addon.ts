/**
 * Loads the native addons that travel inside the executable. The build turns every `require('….node')` of the packages
 * into `loadAddon(name)`; from a checkout the packages load their own files and nothing here runs.
 *
 * Three ways, each for one kind of system:
 * 1. a file beside the executable: images that are built as a whole and mounted read-only;
 * 2. a content-addressed file in the cache or state folder that systemd made: the usual gateway;
 * 3. a file without a name: nothing is writable, or what is may not hold code (`noexec`).
 */
import { closeSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { EdgeError, messageOf } from '../../errors.ts'
import { cacheAddon, holdsAddon, type PackedAddon, unnamedFiles, writeAll } from './addon-file.ts'

interface LoadedAddon {
  readonly exports: unknown
  /** Where it was loaded from, for `self-test` and `status`. */
  readonly source: string
}

const loaded = new Map<string, LoadedAddon>()
let unnamedCount = 0

/**
 * @param name file name of an addon as the build packs it, such as `better_sqlite3.node`.
 * @returns what the addon exports; the same object at every call.
 * @throws {EdgeError} EDGE_FEATURE_MISSING with the reason of every way that was tried, or when this is not the executable.
 */
export function loadAddon(name: string): unknown {
  const known = loaded.get(name)
  if (known !== undefined) return known.exports
  const addon = packedAddon(name)
  const reasons: string[] = []
  for (const way of [fromBesideExecutable, fromCacheFolder, fromUnnamedFile]) {
    try {
      const result = way(addon)
      loaded.set(name, result)
      return result.exports
    } catch (error) {
      reasons.push(messageOf(error))
    }
  }
  throw new EdgeError('EDGE_FEATURE_MISSING', `addon ${name} cannot be loaded: ${reasons.join('; ')}`)
}

/** Addons loaded so far, by name, with where each came from. */
export function addonSources(): ReadonlyMap<string, string> {
  return new Map([...loaded].map(([name, addon]) => [name, addon.source]))
}

function packedAddon(name: string): PackedAddon {
  const sea = process.getBuiltinModule('node:sea')
  if (!sea.isSea())
    throw new EdgeError('EDGE_FEATURE_MISSING', `addon ${name}: no addon is packed outside the executable`)
  const digests: Record<string, string> = JSON.parse(sea.getAsset('addons.json', 'utf8'))
  const digest = digests[name]
  if (digest === undefined) throw new EdgeError('EDGE_FEATURE_MISSING', `addon ${name} is not part of this executable`)
  // `getRawAsset` maps; `getAsset` would copy megabytes into private memory.
  return { name, digest, bytes: () => new Uint8Array(sea.getRawAsset(name)) }
}

function fromBesideExecutable(addon: PackedAddon): LoadedAddon {
  const path = join(dirname(process.execPath), addon.name)
  if (!holdsAddon(path, addon)) throw new Error(`${path}: not there, or of another version`)
  return { exports: openSharedObject(path), source: path }
}

function fromCacheFolder(addon: PackedAddon): LoadedAddon {
  // systemd gives several folders separated by colons when a unit names several.
  const directory = (process.env.CACHE_DIRECTORY || process.env.STATE_DIRECTORY || '').split(':')[0]
  if (!directory) throw new Error('neither CACHE_DIRECTORY nor STATE_DIRECTORY is set')
  const path = cacheAddon(directory, addon)
  return { exports: openSharedObject(path), source: path }
}

function fromUnnamedFile(addon: PackedAddon): LoadedAddon {
  const reasons: string[] = []
  for (const { file, place } of unnamedFiles(addon)) {
    try {
      writeAll(file, addon.bytes())
      // The loader knows objects by their name first: a descriptor's number is used again, so the name must differ.
      unnamedCount++
      return { exports: openSharedObject(`/proc/self/fd/${'./'.repeat(unnamedCount)}${file}`), source: place }
    } catch (error) {
      reasons.push(`${place}: ${messageOf(error)}`)
    } finally {
      closeSync(file)
    }
  }
  throw new Error(reasons.length > 0 ? reasons.join('; ') : 'no place for an unnamed file')
}

function openSharedObject(path: string): unknown {
  const module = { exports: {} }
  process.dlopen(module, path, constants.dlopen.RTLD_NOW)
  return module.exports
}
