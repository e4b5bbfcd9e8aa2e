/**
 * Files that the runtime serves or shows, such as the inspection page: beside the sources in a checkout, inside the
 * executable once it is built. The build packs everything below `src/runtime/page/`.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { EdgeError } from '../../errors.ts'

/** In the executable, the names of the assets of this folder begin with it. */
const PAGE_PREFIX = 'page/'

/**
 * @param name such as `page/index.html`.
 * @returns its bytes; inside the executable they are read-only memory, never to be written to.
 * @throws {EdgeError} EDGE_FEATURE_MISSING when there is none of that name.
 */
export function readAsset(name: string): Uint8Array {
  try {
    const sea = process.getBuiltinModule('node:sea')
    if (sea.isSea()) return new Uint8Array(sea.getRawAsset(name))
    return readFileSync(join(folderInCheckout(), name))
  } catch (cause) {
    throw new EdgeError('EDGE_FEATURE_MISSING', `asset ${name} is not part of this build`, { cause })
  }
}

/** Names of the page's files, such as `page/index.html`, as `readAsset` takes them. */
export function pageAssetNames(): string[] {
  const sea = process.getBuiltinModule('node:sea')
  if (sea.isSea()) return sea.getAssetKeys().filter((name) => name.startsWith(PAGE_PREFIX))
  const folder = folderInCheckout()
  return readdirSync(join(folder, PAGE_PREFIX), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.ts'))
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
}

/** That the names of assets begin in; the executable has no folder. */
const folderInCheckout = (): string => join(import.meta.dirname, '..')
