/** Writes the documents that follow from the sources: run it after a change of settings, errors or commands. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { COMMANDS } from '../src/runtime/cli/commands.ts'
import { formatCommandReference } from '../src/runtime/cli/document.ts'
import { formatCommentedConfig, formatReference } from '../src/runtime/config/document.ts'
import { LISTS, SECTIONS } from '../src/runtime/config/schema.ts'
import { formatMetricReference } from '../src/runtime/observe/metrics-document.ts'
import { formatErrorReference } from '../src/runtime/server/error-document.ts'
import { readArguments } from './arguments.ts'

const ROOT = join(import.meta.dirname, '..')

/** Path in the checkout -> what it must hold. `test/unit/docs.test.ts` compares. */
export function generatedDocuments(): ReadonlyMap<string, string> {
  const tables = { sections: SECTIONS, lists: LISTS }
  return new Map([
    ['config/edge.toml', formatCommentedConfig(tables)],
    ['docs/configuration.md', formatReference(tables)],
    ['docs/errors.md', formatErrorReference()],
    ['docs/metrics.md', formatMetricReference()],
    ['docs/cli.md', formatCommandReference(COMMANDS)],
  ])
}

if (import.meta.main) {
  readArguments('node scripts/docs.ts', {})
  for (const [path, text] of generatedDocuments()) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true })
    writeFileSync(join(ROOT, path), text)
    console.log(path)
  }
}
