/**
 * Holds the sources to the architecture: who may import whom, which files are pure, names, sizes, left-overs. The tables
 * below are the rules; ARCHITECTURE.md draws them. They change together.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import manifest from '../../package.json' with { type: 'json' }
import {
  filesBelow,
  rootFiles,
  type SourceFile,
  type SourceImport,
  sourcesBelow,
  textOf,
} from '../support/source-tree.ts'

/** Units, most specific folder first. `''` holds the files directly in `src/`. */
const UNITS = {
  wire: 'src/sdk/wire/',
  sdk: 'src/sdk/',
  log: 'src/log/',
  'quic-edge': 'src/quic-edge/',
  'quinn-transport': 'src/quinn-transport/',
  sync: 'src/sync/',
  runtime: 'src/runtime/',
  shared: 'src/',
} as const
type Unit = keyof typeof UNITS

/** What each unit may import besides itself. Nobody imports `runtime`; siblings go through ports. */
const MAY_IMPORT: Record<Unit, readonly Unit[]> = {
  shared: [],
  wire: ['shared'],
  'quinn-transport': ['shared'],
  sdk: ['shared', 'wire', 'quinn-transport'],
  log: ['shared', 'wire'],
  'quic-edge': ['shared', 'quinn-transport'],
  sync: ['shared', 'wire', 'sdk'],
  runtime: ['shared', 'wire', 'quinn-transport', 'sdk', 'log', 'quic-edge', 'sync'],
}
/** Units whose files may be imported one by one; all others only through their `index.ts`. */
const OPEN_UNITS: readonly Unit[] = ['shared', 'wire']
/** Files of types alone that may be imported past the border. */
const OPEN_TYPES = ['src/log/api.ts']

/** Where each package may be used: one place that knows it, so that it can be replaced there. */
const PACKAGE_PLACES: Record<string, readonly string[]> = {
  'better-sqlite3': ['src/log/metadata/'],
  pino: ['src/logger.ts'],
  'node-cron': ['src/log/', 'src/runtime/'],
  'smol-toml': ['src/runtime/config/'],
  '@fails-components/webtransport': ['src/quinn-transport/', 'src/quic-edge/io/', 'src/sdk/transport/'],
  '@moq/web-transport': ['src/quinn-transport/'],
}

/** The environment is read in one place. Others are told by systemd or the system, before there is a configuration. */
const ENVIRONMENT_PLACES = [
  'src/runtime/config/', // the settings
  'src/runtime/main.ts', // hands it to the command
  'src/runtime/executable/addon.ts', // CACHE_DIRECTORY, STATE_DIRECTORY of the unit
  'src/runtime/sdnotify.ts', // NOTIFY_SOCKET, WATCHDOG_USEC of the unit
  'src/quinn-transport/addon-file.ts', // XDG_CACHE_HOME, from a checkout only
]

const LINES_MAX = 500
/** What a file may not be called: words that gather what has no subject. */
const VAGUE_NAMES = /(^|[-./])(utils?|helpers?|common|managers?|misc)([-./]|$)/

/** What makes a core depend on more than its input. */
const IMPURE: readonly (readonly [RegExp, string])[] = [
  [/\bawait\b/, 'await'],
  [/\bDate\.now\b|\bnew Date\(\)/, 'the wall clock'],
  [/\bperformance\./, 'the monotonic clock'],
  [/\bMath\.random\b|\bgetRandomValues\b|\brandomUUID\b/, 'chance'],
  [/\b(setTimeout|setInterval|setImmediate|queueMicrotask)\b/, 'a timer'],
  [/\bprocess\./, 'the process'],
]

const sources = sourcesBelow('src')
const everything = [...sources, ...sourcesBelow('test'), ...sourcesBelow('scripts')].filter(
  (file) => !file.path.startsWith('test/fixtures/'),
)

function unitOf(path: string): Unit {
  const unit = (Object.keys(UNITS) as Unit[]).find((name) => path.startsWith(UNITS[name]))
  assert.ok(unit !== undefined, `${path} lies in no unit`)
  return unit
}

/** A core by its folder, a codec, or a file whose first comment says so: `Pure: …` or `(pure)`. */
function isPure(file: SourceFile): boolean {
  const header = /^\/\*\*[\s\S]*?\*\//.exec(file.text)?.[0] ?? ''
  return file.path.includes('/core/') || unitOf(file.path) === 'wire' || /\bPure[:.]|\(pure\)/.test(header)
}

function borderFault(file: SourceFile, target: SourceImport): string | undefined {
  if (target.path === undefined) return undefined
  if (!target.path.startsWith('src/')) return target.specifier.endsWith('package.json') ? undefined : 'leaves src'
  const from = unitOf(file.path)
  const to = unitOf(target.path)
  if (from === to) return undefined
  if (!MAY_IMPORT[from].includes(to)) return `${from} must not import ${to}`
  const isOpen = OPEN_UNITS.includes(to) || target.path === `${UNITS[to]}index.ts`
  const isOpenType = target.isTypeOnly && OPEN_TYPES.includes(target.path)
  return isOpen || isOpenType ? undefined : `${to} is entered through its index.ts`
}

function packageOf(specifier: string): string | undefined {
  if (/^(\.|node:|#)/.test(specifier)) return undefined
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

/** Lines of `files` that match, as `path:line`. */
function linesWith(files: readonly SourceFile[], pattern: RegExp, part: 'text' | 'code'): string[] {
  return files.flatMap((file) =>
    file[part].split('\n').flatMap((line, index) => (pattern.test(line) ? [`${file.path}:${index + 1}`] : [])),
  )
}

test('units import each other in one direction, through their borders', () => {
  const faults = sources.flatMap((file) =>
    file.imports.flatMap((target) => {
      const fault = borderFault(file, target)
      return fault === undefined ? [] : [`${file.path}: ${target.specifier}: ${fault}`]
    }),
  )
  assert.deepEqual(faults, [])
})

test('packages are direct dependencies, each used where it belongs', () => {
  const atRunTime = Object.keys(manifest.dependencies)
  const faults = sources.flatMap((file) =>
    file.imports.flatMap(({ specifier }) => {
      const name = packageOf(specifier)
      if (name === undefined) return []
      if (!atRunTime.includes(name)) return [`${file.path}: ${name} is no dependency`]
      const places = PACKAGE_PLACES[name]
      const isInPlace = places === undefined || places.some((place) => file.path.startsWith(place))
      return isInPlace ? [] : [`${file.path}: ${name} belongs to ${places.join(', ')}`]
    }),
  )
  assert.deepEqual(faults, [])
})

test('tests and scripts import nothing that is not a direct dependency', () => {
  const { dependencies, devDependencies } = manifest
  const direct = Object.keys({ ...dependencies, ...devDependencies })
  const faults = everything.flatMap((file) =>
    file.imports.flatMap(({ specifier }) => {
      const name = packageOf(specifier)
      return name === undefined || direct.includes(name) ? [] : [`${file.path}: ${name}`]
    }),
  )
  assert.deepEqual(faults, [])
})

test('pure files depend on nothing but their input', () => {
  const pure = sources.filter(isPure)
  const imports = pure.flatMap((file) =>
    file.imports
      .filter(({ specifier }) => specifier.startsWith('node:'))
      .map((found) => `${file.path}: ${found.specifier}`),
  )
  const uses = IMPURE.flatMap(([pattern, what]) => linesWith(pure, pattern, 'code').map((place) => `${place}: ${what}`))
  assert.ok(pure.length > 0)
  assert.deepEqual([...imports, ...uses], [])
})

test('the environment is read in one place', () => {
  const others = sources.filter((file) => !ENVIRONMENT_PLACES.some((place) => file.path.startsWith(place)))
  assert.deepEqual(linesWith(others, /\bprocess\.env\b/, 'code'), [])
})

test('files have one subject: a name that says it, and a length that fits it', () => {
  const names = everything.map((file) => file.path)
  assert.deepEqual(
    names.filter((path) => VAGUE_NAMES.test(path)),
    [],
  )
  assert.deepEqual(
    names.filter((path) => !/^[a-z0-9-]+(\.[a-z0-9-]+)*$/.test(path.split('/').at(-1) ?? '')),
    [],
  )
  assert.deepEqual(
    everything.filter((file) => file.text.split('\n').length > LINES_MAX + 1).map((file) => file.path),
    [],
  )
})

test('exports have names', () => {
  assert.deepEqual(linesWith(everything, /^\s*export default\b|\bas default\b/, 'code'), [])
})

test('nothing is left over: no notes to finish, no test left out in silence', () => {
  // Put together here, so that this file is not what it looks for.
  const notes = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX'].join('|')})\\b`)
  assert.deepEqual(linesWith(everything, notes, 'text'), [])
  const leftOut = /\b(test|it|describe|suite)\.(only|skip|todo)\(|\bonly: true|\bskip: true|\.skip\(\)/
  assert.deepEqual(linesWith(everything, leftOut, 'code'), [])
})

test('no file names a machine or a registry', () => {
  const folders = ['src', 'test', 'scripts', 'docs', 'hardware', 'config', '.ci']
  const texts = [
    ...folders.flatMap((folder) =>
      filesBelow(folder, (path) => /\.(ts|md|json|toml|service|sh|conf|html|css|js)$|\/run$/.test(path)),
    ),
    ...rootFiles().filter((path) =>
      /^[A-Z]+\.md$|^NOTICE$|^(package|package-lock|tsconfig.*|biome)\.json$|^\.npmrc$/.test(path),
    ),
  ]
  const machine = /(?<![\w.}/:-])\/(?:root|work|home\/(?!<)\w+|Users\/\w+)\//
  const registry = new RegExp(['registry\\.' + 'npmjs', '"resolved": *"https?:'].join('|'))
  const faults = texts.filter((path) => machine.test(textOf(path)) || registry.test(textOf(path)))
  assert.deepEqual(faults, [])
})
