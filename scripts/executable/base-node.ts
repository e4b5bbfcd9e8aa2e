/**
 * The Node binary an executable is made of: exactly the one that the lock names, for either architecture, stripped.
 */
import { type ExecFileSyncOptions, execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'

export type Architecture = 'x64' | 'arm64'
export const ARCHITECTURES: readonly Architecture[] = ['x64', 'arm64']

export const ROOT = resolve(import.meta.dirname, '../..')
/** What may be thrown away at any time: `npm ci` does. */
export const CACHE = join(ROOT, 'node_modules/.cache/iggy-edge')

interface LockedPackage {
  readonly version: string
  readonly integrity: string
}

export interface BaseNode {
  readonly path: string
  /** What the binary is made of: the lock's integrity, and whether its symbols are gone. */
  readonly identity: string
  readonly isStripped: boolean
}

/**
 * @returns the Node of the lock for `architecture`, from `node_modules` or, for the other architecture, from the registry.
 * @throws {Error} when it has to be fetched and cannot be, or is not what the lock says.
 */
export function baseNode(architecture: Architecture): BaseNode {
  const name = `node-linux-${architecture}`
  const locked = lockedPackage(name)
  const installed = join(ROOT, 'node_modules', name, 'bin/node')
  const path = existsSync(installed) ? installed : fetchNode(name, locked)
  return strip(path, architecture, locked)
}

function lockedPackage(name: string): LockedPackage {
  const lock: { packages: Record<string, LockedPackage> } = JSON.parse(
    readFileSync(join(ROOT, 'package-lock.json'), 'utf8'),
  )
  const entry = lock.packages[`node_modules/${name}`]
  if (entry === undefined) throw new Error(`package-lock.json does not name ${name}`)
  return entry
}

/** npm does not install optional packages of another architecture, so this one is packed on its own, and checked. */
function fetchNode(name: string, locked: LockedPackage): string {
  const path = join(CACHE, `${name}-${locked.version}`, 'node')
  if (existsSync(path)) return path
  mkdirSync(CACHE, { recursive: true })
  const folder = mkdtempSync(join(CACHE, 'fetch-'))
  try {
    npm(['pack', `${name}@${locked.version}`, '--pack-destination', folder, '--silent'])
    const archive = join(folder, `${name}-${locked.version}.tgz`)
    const integrity = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`
    if (integrity !== locked.integrity)
      throw new Error(`${name}: the lock says ${locked.integrity}, fetched ${integrity}`)
    execFileSync('tar', ['-xzf', archive, '-C', folder, 'package/bin/node'])
    mkdirSync(join(path, '..'), { recursive: true })
    renameSync(join(folder, 'package/bin/node'), path)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  return path
}

function npm(parameters: string[]): void {
  const options: ExecFileSyncOptions = { stdio: ['ignore', 'ignore', 'inherit'], cwd: ROOT }
  const script = process.env.npm_execpath
  if (script === undefined) execFileSync('npm', parameters, options)
  else execFileSync(process.execPath, [script, ...parameters], options)
}

/**
 * Takes the symbols out: 40 MB less. It must be done before the program is put in, as stripping afterwards cuts the
 * program off without a word.
 */
function strip(path: string, architecture: Architecture, locked: LockedPackage): BaseNode {
  const stripped = join(CACHE, `node-linux-${architecture}-${locked.version}-stripped`)
  const tool =
    architecture === process.arch
      ? 'strip'
      : { x64: 'x86_64-linux-gnu-strip', arm64: 'aarch64-linux-gnu-strip' }[architecture]
  if (!existsSync(stripped)) {
    mkdirSync(CACHE, { recursive: true })
    const temporary = `${stripped}.${process.pid}`
    try {
      copyFileSync(path, temporary)
      execFileSync(tool, ['--strip-all', temporary])
      renameSync(temporary, stripped)
    } catch (error) {
      rmSync(temporary, { force: true })
      if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
      console.log(`${tool} is not installed (package binutils): the ${architecture} executable keeps its symbols`)
      return { path, identity: `${locked.integrity} with symbols`, isStripped: false }
    }
  }
  return { path: stripped, identity: `${locked.integrity} stripped`, isStripped: true }
}
