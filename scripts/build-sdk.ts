/**
 * Compiles the client to JavaScript and declarations in `dist/sdk`, a package of its own: `npm publish ./dist/sdk`.
 *
 * The package is not the checkout's root, because that one pins a Node of its own, which would take the place of the
 * user's in every script of a project that depends on it.
 */
import { execFileSync } from 'node:child_process'
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../package.json' with { type: 'json' }
import { readArguments } from './arguments.ts'
import { ROOT } from './executable/base-node.ts'

const output = join(ROOT, 'dist/sdk')

/** Names of packages that the compiled files import. */
function importedPackages(): string[] {
  const files = readdirSync(output, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'))
  const specifiers = files.flatMap((file) => {
    const text = readFileSync(join(output, file), 'utf8')
    return [...text.matchAll(/(?:\bfrom|^import|\bimport\()\s*'([^'.][^']*)'/gm)].map((match) => match[1] ?? '')
  })
  const packages = specifiers
    .filter((specifier) => !specifier.startsWith('node:'))
    .map((specifier) => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/'))
  return [...new Set(packages)].sort()
}

/** Versions as the checkout has tested them. The addon is found by name only, so its package is not among the imports. */
function dependencies(): Record<string, string> {
  const versions: Record<string, string> = manifest.dependencies
  const names = importedPackages()
  if (names.includes('@fails-components/webtransport')) names.push('@moq/web-transport')
  return Object.fromEntries(
    names.map((name) => {
      const version = versions[name]
      if (version === undefined) throw new Error(`the SDK imports ${name}, which is no dependency`)
      return [name, version]
    }),
  )
}

readArguments('npm run build:sdk', {})
rmSync(output, { recursive: true, force: true })
execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.sdk.json'], { cwd: ROOT, stdio: 'inherit' })
const entry = { types: './sdk/index.d.ts', default: './sdk/index.js' }
const { name, version, license, type, engines } = manifest
const packageJson = {
  name,
  version,
  description: 'Client of iggy-edge and of Apache Iggy: producer, consumer, readings.',
  license,
  type,
  exports: { '.': entry, './sdk': entry },
  engines,
  dependencies: dependencies(),
}
writeFileSync(join(output, 'package.json'), `${JSON.stringify(packageJson, null, 2)}\n`)
for (const file of ['LICENSE', 'NOTICE', 'CHANGELOG.md']) copyFileSync(join(ROOT, file), join(output, file))
console.log(`${output}: ${Object.keys(packageJson.dependencies).join(', ') || 'no dependencies'}`)
