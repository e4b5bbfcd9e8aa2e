/**
 * Builds one executable: the program and its assets are put into the Node of the lock, at a place that every arm64 kernel
 * can map. The result is kept as long as nothing that went into it has changed.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { CODE_PREFIX, PART_PREFIX } from '../../src/runtime/executable/program-parts.ts'
import { type Architecture, type BaseNode, baseNode, CACHE, ROOT } from './base-node.ts'
import { type Bundle, bundle, bundleBoot } from './bundle.ts'
import { recordCompiledCode } from './compiled-code.ts'
import { misalignedSegments, PAGE_SIZE_MAX, parseSegments, SEGMENT_NOTE, withMappedNote } from './elf.ts'
import { runnerFor } from './runner.ts'

/**
 * Flags that the executable gives itself. Small heaps, as its work is buffers; one compiler thread. An operator can add
 * others by `NODE_OPTIONS`.
 */
const NODE_FLAGS = [
  '--max-old-space-size=48',
  '--max-semi-space-size=1',
  '--v8-pool-size=1',
  '--disable-warning=ExperimentalWarning',
  // Sent from habit, to have a log file opened again, it would open a debugger to everybody on the machine.
  '--disable-sigusr1',
]

/** In Node's binary; the digit behind it says whether a program was put in. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:'
const NOTE_NAME = 'NODE_SEA_BLOB'
const NOTE_NAMES_MAX_BYTES = 4096
/** Kernels on x64 have 4 KiB pages; its Node is linked for no others. */
const PAGE_SIZE: Readonly<Record<Architecture, number>> = { x64: 0x1000, arm64: PAGE_SIZE_MAX }
/** Twice what it should be would mean that symbols or assets went in that should not. */
const SIZE_MAX_BYTES = 200e6

export interface Executable {
  readonly path: string
  readonly sizeBytes: number
  readonly isStripped: boolean
  /** False when an earlier build of the same inputs was there. */
  readonly isNew: boolean
}

/** @throws {Error} when a part is missing or the result would not start. */
export async function buildExecutable(architecture: Architecture): Promise<Executable> {
  const path = join(ROOT, `dist/iggy-edge-linux-${architecture}`)
  const program = await bundle(architecture)
  const base = baseNode(architecture)
  const inputs = digestOf(program, base, architecture)
  const stampPath = join(dirname(path), `.${architecture}-inputs`)
  const described = (isNew: boolean): Executable => ({
    path,
    sizeBytes: statSync(path).size,
    isStripped: base.isStripped,
    isNew,
  })
  // Also beside an executable that is there: it may have been left alone.
  writeBeside(program, dirname(path), architecture)
  if (
    existsSync(path) &&
    existsSync(stampPath) &&
    readFileSync(stampPath, 'utf8') === `${inputs} ${statSync(path).size}`
  ) {
    return described(false)
  }
  const bytes = await assemble(program, base, architecture)
  check(bytes, architecture)
  // Renamed into place: another build, or a running executable, never sees half of it.
  const temporary = `${path}.${process.pid}`
  writeExecutable(temporary, bytes)
  renameSync(temporary, path)
  writeFileSync(stampPath, `${inputs} ${bytes.length}`)
  return described(true)
}

/** The executable carries its addons; images that are mounted read-only take them as files beside it. */
function writeBeside(program: Bundle, dist: string, architecture: Architecture): void {
  const folder = join(dist, `addons-linux-${architecture}`)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(dist, 'THIRD-PARTY.txt'), program.thirdPartyText)
  for (const [name, bytes] of program.assets) {
    if (name.endsWith('.node')) writeFileSync(join(folder, name), bytes)
  }
}

function digestOf(program: Bundle, base: BaseNode, architecture: Architecture): string {
  const hash = createHash('sha256')
  const recipe = readdirSync(import.meta.dirname).sort()
  const parts: [string, Uint8Array | string][] = [
    ['base', base.identity],
    // Without one it goes without compiled code.
    ['runner', 'missing' in runnerFor(architecture) ? 'none' : 'there'],
    ...recipe.map((name): [string, Uint8Array] => [name, readFileSync(join(import.meta.dirname, name))]),
    ...program.parts,
    ...program.assets,
  ]
  for (const [name, bytes] of parts) hash.update(`${name} ${bytes.length}\n`).update(bytes)
  return hash.digest('hex')
}

/** @returns the executable, with compiled code where it can run here to record it. */
async function assemble(program: Bundle, base: BaseNode, architecture: Architecture): Promise<Buffer> {
  const parts = prefixed(PART_PREFIX, program.parts)
  const assets = new Map([...program.assets, ...parts])
  mkdirSync(CACHE, { recursive: true })
  const folder = mkdtempSync(join(CACHE, 'build-'))
  try {
    const boot = await bundleBoot(false)
    const runner = runnerFor(architecture)
    if ('missing' in runner) {
      console.error(
        `${architecture}: starts more slowly, without compiled code that only a start records: ${runner.missing}`,
      )
      return withProgram(boot, assets, base, folder)
    }
    const recorderPath = join(folder, 'recorder')
    writeExecutable(recorderPath, withProgram(await bundleBoot(true), assets, base, folder))
    const command = [...runner.words, recorderPath]
    const compiledCode = await recordCompiledCode(command, mkdtempSync(join(folder, 'record-')))
    return withProgram(boot, new Map([...assets, ...prefixed(CODE_PREFIX, compiledCode)]), base, folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const prefixed = (prefix: string, files: ReadonlyMap<string, Uint8Array>): [string, Uint8Array][] =>
  [...files].map(([name, bytes]) => [`${prefix}${name}`, bytes])

/** Lets Node make its blob, then takes it out of Node's result and puts it in again where it can be mapped. */
function withProgram(
  boot: Uint8Array,
  assets: ReadonlyMap<string, Uint8Array>,
  base: BaseNode,
  folder: string,
): Buffer {
  const put = (name: string, bytes: Uint8Array | string): string => {
    const file = join(folder, name)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, bytes)
    return file
  }
  const output = join(folder, 'built')
  const configuration = {
    main: put('boot.cjs', boot),
    output,
    executable: base.path,
    disableExperimentalSEAWarning: true,
    execArgv: NODE_FLAGS,
    execArgvExtension: 'env',
    assets: Object.fromEntries([...assets].map(([name, bytes]) => [name, put(`assets/${name}`, bytes)])),
  }
  execFileSync(process.execPath, ['--build-sea', put('sea.json', JSON.stringify(configuration))], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const executable = readFileSync(base.path)
  const fuse = executable.indexOf(`${FUSE}0`)
  if (fuse < 0) throw new Error('this Node cannot carry a program: it has no fuse')
  executable.write('1', fuse + FUSE.length, 'latin1')
  return withMappedNote(executable, programNote(readFileSync(output)))
}

function writeExecutable(path: string, bytes: Uint8Array): void {
  writeFileSync(path, bytes)
  chmodSync(path, 0o755)
}

/** Node puts its note behind those that the binary had, in one segment; the blob itself comes after all their names. */
function programNote(built: Buffer): Uint8Array {
  const notes = parseSegments(built)
    .filter((segment) => segment.type === SEGMENT_NOTE)
    .map((segment) => built.subarray(segment.position, segment.position + segment.fileSize))
  const note = notes.find((bytes) => bytes.subarray(0, NOTE_NAMES_MAX_BYTES).includes(NOTE_NAME))
  if (note === undefined) throw new Error(`Node built an executable without ${NOTE_NAME}`)
  return note
}

function check(bytes: Buffer, architecture: Architecture): void {
  const misaligned = misalignedSegments(bytes, PAGE_SIZE[architecture])
  if (misaligned.length > 0) throw new Error(`segments that a kernel cannot map: ${misaligned.join('; ')}`)
  if (bytes.length > SIZE_MAX_BYTES) throw new Error(`${bytes.length} bytes, expected at most ${SIZE_MAX_BYTES}`)
}
