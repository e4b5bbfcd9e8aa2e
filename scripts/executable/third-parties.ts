/** The licences of everything that travels inside the executable: they ask to be handed on with it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Architecture, ROOT } from './base-node.ts'

/** Packages whose files are inside without being imported by name. */
const CARRIED = ['@moq/web-transport', 'better-sqlite3']

/**
 * @param bundledPaths files that went into the program, from the root of the checkout.
 * @returns one section a package: name, version, licence, and the licence's text where the package has it.
 */
export function thirdPartyText(bundledPaths: readonly string[], architecture: Architecture): string {
  const bundled = bundledPaths.flatMap((path) => /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? [])
  const sections = [...new Set([...CARRIED, ...bundled])].sort().map(sectionOf)
  return [nodeSection(architecture), ...sections].join(`\n\n${'='.repeat(80)}\n\n`)
}

function sectionOf(name: string): string {
  const folder = join(ROOT, 'node_modules', name)
  const { version, license }: Record<string, string> = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find((entry) => /^licen[cs]e(\.\w+)?$/i.test(entry))
  const text = file === undefined ? 'The package carries no licence text.' : readFileSync(join(folder, file), 'utf8')
  return `${name} ${version} (${license})\n\n${text.trim()}`
}

/** Node's own file names everything that its binary is made of. It is the same for all architectures. */
function nodeSection(architecture: Architecture): string {
  const candidates = [architecture, process.arch].map((name) => join(ROOT, `node_modules/node-linux-${name}/LICENSE`))
  const file = candidates.find((path) => existsSync(path))
  return `Node.js\n\n${file === undefined ? 'See https://github.com/nodejs/node/blob/main/LICENSE' : readFileSync(file, 'utf8').trim()}`
}
