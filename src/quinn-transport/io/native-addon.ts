/**
 * Loads the addon of `@moq/web-transport` from `node_modules`, lowered where glibc is older than it asks for. The package's
 * own loader cannot do that, and its entry is TypeScript, which Node does not run below `node_modules`.
 *
 * The build of the executable replaces this file as a whole: there the addon, already lowered, is packed inside.
 */
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { constants, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { EdgeError } from '../../errors.ts'
import { KNOWN_ADDON_DIGESTS, lowerGlibc } from '../core/lower-glibc.ts'

let loaded: unknown

/**
 * @returns what the addon exports (`NapiServer`, `NapiClient`, ...), the same object at every call; its shape is for the
 *   caller to state.
 * @throws {EdgeError} EDGE_FEATURE_MISSING when there is no addon for this machine or it cannot be loaded.
 */
export function loadNativeAddon(): unknown {
  loaded ??= loadInstalled(installedPath())
  return loaded
}

function installedPath(): string {
  const { platform, arch } = process
  if (platform !== 'linux' || KNOWN_ADDON_DIGESTS[arch] === undefined) {
    throw new EdgeError('EDGE_FEATURE_MISSING', `QUIC needs Linux on x64 or arm64, this is ${platform} on ${arch}`)
  }
  try {
    // The package exports its entry only, so the addon is found from there.
    const entry = createRequire(import.meta.url).resolve('@moq/web-transport')
    return join(dirname(entry), '..', `web-transport.linux-${arch}-gnu.node`)
  } catch (cause) {
    throw new EdgeError('EDGE_FEATURE_MISSING', 'QUIC needs the package @moq/web-transport, which is not installed', {
      cause,
    })
  }
}

function loadInstalled(path: string): unknown {
  try {
    return openSharedObject(path)
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause)
    if (!message.includes('GLIBC_'))
      throw new EdgeError('EDGE_FEATURE_MISSING', `${path} cannot be loaded: ${message}`, { cause })
  }
  return loadLowered(path)
}

function loadLowered(path: string): unknown {
  const original = readFileSync(path)
  const digest = createHash('sha256').update(original).digest('hex')
  const expected = KNOWN_ADDON_DIGESTS[process.arch]
  if (digest !== expected) {
    throw new EdgeError(
      'EDGE_FEATURE_MISSING',
      `${path} is not the file that was checked: expected ${expected}, found ${digest}`,
    )
  }
  // A folder of our own that nobody else may enter; the file can go as soon as it is mapped.
  const folder = mkdtempSync(join(tmpdir(), 'iggy-edge-'))
  try {
    const loweredPath = join(folder, 'web-transport.node')
    writeFileSync(loweredPath, lowerGlibc(original).bytes, { mode: 0o500 })
    return openSharedObject(loweredPath)
  } catch (cause) {
    if (cause instanceof EdgeError) throw cause
    throw new EdgeError('EDGE_FEATURE_MISSING', `the lowered addon cannot be loaded from ${folder}: ${cause}`, {
      cause,
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function openSharedObject(path: string): unknown {
  const module = { exports: {} }
  process.dlopen(module, path, constants.dlopen.RTLD_NOW)
  return module.exports
}
