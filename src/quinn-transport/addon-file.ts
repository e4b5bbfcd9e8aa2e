/**
 * Finds the quinn addon of the installed package and opens it; keeps a lowered copy where glibc is older than 2.38.
 *
 * Copies are content-addressed: `<cache>/<sha256 of the published file>.node`, written beside and renamed, so a crash or
 * two processes at once leave a whole file or none. Every file is hashed before it is opened.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants, homedir } from 'node:os'
import path from 'node:path'
import { EdgeError, messageOf } from '../errors.ts'
import { lowerGlibc } from './lower-glibc.ts'
import { PINNED_ADDONS, type PinnedAddon } from './pinned-addons.ts'

const PACKAGE = '@moq/web-transport'

/** @returns exports of the addon for this machine. @throws EDGE_FEATURE_MISSING with what was tried. */
export function loadAddonFromPackage(): unknown {
  const pinned = PINNED_ADDONS[process.arch]
  if (process.platform !== 'linux' || pinned === undefined) {
    throw missing(`there is none for ${process.platform} on ${process.arch}`)
  }
  const publishedPath = path.join(packageDirectory(), pinned.fileName)
  try {
    return openAddon(publishedPath)
  } catch (error) {
    if (!needsNewerGlibc(error)) throw missing(messageOf(error), error)
  }
  return openAddon(loweredCopy(publishedPath, pinned))
}

/**
 * @returns path of a lowered copy whose content is the pinned one; makes it when missing or damaged.
 * @throws EDGE_FEATURE_MISSING when the published file is another one than was tested, or no folder can be written.
 */
export function loweredCopy(publishedPath: string, pinned: PinnedAddon, folders = cacheFolders()): string {
  const fileName = `${pinned.publishedSha256}.node`
  for (const folder of folders) {
    const existing = path.join(folder, fileName)
    if (sha256OfFile(existing) === pinned.loweredSha256) return existing
  }
  const loweredBytes = lowerPinned(publishedPath, pinned)
  const problems: string[] = []
  for (const folder of folders) {
    try {
      return writeWhole(folder, fileName, loweredBytes)
    } catch (error) {
      problems.push(messageOf(error))
    }
  }
  throw missing(`no folder for its fitted copy: ${problems.join('; ')}`)
}

/** Lowers a published file after checking that it is the one we tested, and checks the result. */
export function lowerPinned(publishedPath: string, pinned: PinnedAddon): Uint8Array {
  const publishedBytes = readFileSync(publishedPath)
  const found = sha256(publishedBytes)
  if (found !== pinned.publishedSha256) {
    throw missing(`${pinned.fileName} has SHA-256 ${found}, expected ${pinned.publishedSha256}`)
  }
  const loweredBytes = lowerGlibc(publishedBytes)
  const result = sha256(loweredBytes)
  if (result !== pinned.loweredSha256)
    throw missing(`fitting it gave SHA-256 ${result}, expected ${pinned.loweredSha256}`)
  return loweredBytes
}

/** Folder of the installed package, found from this file. */
export function packageDirectory(): string {
  try {
    // Its entry cannot be imported in plain Node, but its place can be asked for: `<package>/src/index.ts`.
    return path.dirname(path.dirname(createRequire(import.meta.url).resolve(PACKAGE)))
  } catch (error) {
    throw missing(`the package ${PACKAGE} is not installed`, error)
  }
}

/** Beside the package first: it goes when the package goes. */
function cacheFolders(): string[] {
  const nodeModules = path.dirname(path.dirname(packageDirectory()))
  return [path.join(nodeModules, '.cache', 'iggy-edge'), path.join(homedir(), '.cache', 'iggy-edge')]
}

function writeWhole(folder: string, fileName: string, bytes: Uint8Array): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const target = path.join(folder, fileName)
  const partial = `${target}.${process.pid}.partial`
  try {
    writeFileSync(partial, bytes, { mode: 0o500, flush: true })
    renameSync(partial, target)
  } finally {
    rmSync(partial, { force: true })
  }
  return target
}

function openAddon(file: string): unknown {
  const holder: { exports: unknown } = { exports: {} }
  process.dlopen(holder, file, constants.dlopen.RTLD_NOW)
  return holder.exports
}

function needsNewerGlibc(error: unknown): boolean {
  return /GLIBC_2\.\d+' not found/.test(messageOf(error))
}

function sha256OfFile(file: string): string | undefined {
  try {
    return sha256(readFileSync(file))
  } catch {
    return undefined // not there yet, or unreadable: it is made anew
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

function missing(why: string, cause?: unknown): EdgeError {
  return new EdgeError('EDGE_FEATURE_MISSING', `the QUIC addon cannot be loaded: ${why}`, { cause })
}
