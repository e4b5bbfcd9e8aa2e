/**
 * Puts the runtime into minified parts, with the addons and page files it needs beside them. What is imported when it is used
 * (`import()`) gets parts of its own, so that a service does not hold the text of commands and features that it never runs.
 * The parts are CommonJS, because modules as the program cost 4.6 MB of private memory and 30 ms at every start.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { basename, join, parse, relative } from 'node:path'
import { build, type Plugin, transform } from 'esbuild'
import { lowerPinned } from '../../src/quinn-transport/addon-file.ts'
import { PINNED_ADDONS, QUINN_ADDON_NAME } from '../../src/quinn-transport/pinned-addons.ts'
import { MAIN_PART } from '../../src/runtime/executable/program-parts.ts'
import { type Architecture, ROOT } from './base-node.ts'
import { thirdPartyText } from './third-parties.ts'

export interface Bundle {
  /** The program: parts by name, in which they ask for each other as `./name`. It begins with `MAIN_PART`. */
  readonly parts: ReadonlyMap<string, Uint8Array>
  /** Files that the program finds by name: addons, their digests, the page. */
  readonly assets: ReadonlyMap<string, Uint8Array>
  /** Licences of what is inside, to be handed on with the executable. */
  readonly thirdPartyText: string
}

const SQLITE_ADDON_NAME = 'better_sqlite3.node'
const QUIC_TRANSPORT = '@fails-components/webtransport-transport-http3-quiche'

/** Packages that look for an addon of theirs in `node_modules`, and what stands there in the executable. */
const REPLACEMENTS: readonly { readonly file: RegExp; readonly contents: string }[] = [
  {
    file: /\/better-sqlite3\/lib\/binding\.js$/,
    contents: `
      const { loadAddon } = require('./src/runtime/executable/addon.ts')
      exports.getBinding = (given) => given ?? loadAddon(${JSON.stringify(SQLITE_ADDON_NAME)})`,
  },
  // `cbor-x` asks for it in a `try`: its JavaScript does, and a third addon would cost more than it gives.
  { file: /\/cbor-extract\/index\.js$/, contents: `throw new Error('not part of the executable')` },
]

const replaceLoaders: Plugin = {
  name: 'replace-loaders',
  setup({ onLoad }) {
    for (const { file, contents } of REPLACEMENTS) {
      onLoad({ filter: file }, () => ({ contents, loader: 'js', resolveDir: ROOT }))
    }
  },
}

/** How much is shown of what stands around a character. */
const SHOWN = 40

/** Parts are read as one byte a character. The bundler escapes strings; regular expressions it leaves as they are. */
function refuseNonAscii(text: string): void {
  const at = text.search(/[\u0080-\uffff]/)
  if (at < 0) return
  const around = text.slice(Math.max(0, at - SHOWN), at + SHOWN)
  throw new Error(`the program must be ASCII alone: write the character as an escape in …${around}…`)
}

/** What both steps of the bundling share. */
const OUTPUT = {
  platform: 'node',
  target: 'node26',
  minify: true,
  legalComments: 'none',
  logLevel: 'warning',
  // `import.meta` is empty in CommonJS: sources that use it ask first whether they run inside the executable.
  logOverride: { 'empty-import-meta': 'silent' },
} as const

export async function bundle(architecture: Architecture): Promise<Bundle> {
  const result = await build({
    ...OUTPUT,
    stdin: {
      contents: "import './src/runtime/executable/packed-addons.ts'\nimport './src/runtime/main.ts'",
      resolveDir: ROOT,
    },
    alias: {
      [QUIC_TRANSPORT]: join(ROOT, 'src/quinn-transport/transport-module.ts'),
      // Its module asks for its own place while it loads, which only the CommonJS form can tell inside a bundle.
      'node-cron': join(ROOT, 'node_modules/node-cron/dist/node-cron.cjs'),
    },
    bundle: true,
    // Only modules are split into parts; each part becomes CommonJS below.
    format: 'esm',
    splitting: true,
    entryNames: parse(MAIN_PART).name,
    outdir: ROOT,
    absWorkingDir: ROOT,
    metafile: true,
    write: false,
    plugins: [replaceLoaders],
  })
  const parts = await Promise.all(
    result.outputFiles.map(async ({ path, text }) => [basename(path), await commonJsOf(text)] as const),
  )
  return {
    parts: new Map(parts),
    assets: new Map([...addonAssets(architecture), ...pageAssets()]),
    thirdPartyText: thirdPartyText(Object.keys(result.metafile.inputs), architecture),
  }
}

async function commonJsOf(text: string): Promise<Uint8Array> {
  const { code } = await transform(text, { ...OUTPUT, format: 'cjs', supported: { 'dynamic-import': false } })
  refuseNonAscii(code)
  // What Node hands to a CommonJS module. The last line may end in a comment.
  return Buffer.from(`(function(exports,require,module,__filename,__dirname){${code}\n})`, 'latin1')
}

/** The executable's main program, which runs the parts. */
export async function bundleBoot(isRecorder: boolean): Promise<Uint8Array> {
  const { outputFiles } = await build({
    ...OUTPUT,
    entryPoints: [join(import.meta.dirname, 'boot.ts')],
    define: { IS_RECORDER: String(isRecorder) },
    bundle: true,
    format: 'cjs',
    write: false,
  })
  const [boot] = outputFiles
  if (boot === undefined) throw new Error('esbuild gave no output')
  return boot.contents
}

function addonAssets(architecture: Architecture): Map<string, Uint8Array> {
  const pinned = PINNED_ADDONS[architecture]
  if (pinned === undefined) throw new Error(`no QUIC addon for ${architecture}`)
  const addons = new Map<string, Uint8Array>([
    [SQLITE_ADDON_NAME, readFileSync(join(ROOT, `node_modules/better-sqlite3/prebuilds/linux-${architecture}.node`))],
    [QUINN_ADDON_NAME, lowerPinned(join(ROOT, 'node_modules/@moq/web-transport', pinned.fileName), pinned)],
  ])
  const digests = [...addons].map(([name, bytes]) => [name, createHash('sha256').update(bytes).digest('hex')])
  addons.set('addons.json', Buffer.from(JSON.stringify(Object.fromEntries(digests))))
  return addons
}

/** What a browser is sent; sources that have to be compiled first are none of it. */
function pageAssets(): Map<string, Uint8Array> {
  const runtime = join(ROOT, 'src/runtime')
  const page = join(runtime, 'page')
  if (!existsSync(page)) return new Map()
  const files = readdirSync(page, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
  return new Map(files.map((file) => [relative(runtime, file), readFileSync(file)]))
}
