/** Builds the executables: `npm run build` both, `npm run build -- arm64` one. */
import { ARCHITECTURES, type Architecture } from './executable/base-node.ts'
import { buildExecutable } from './executable/build.ts'

function architecturesOf(names: readonly string[]): readonly Architecture[] {
  if (names.length === 0) return ARCHITECTURES
  return names.map((name) => {
    const architecture = ARCHITECTURES.find((known) => known === name)
    if (architecture === undefined) throw new Error(`architecture ${name}: expected one of ${ARCHITECTURES.join(', ')}`)
    return architecture
  })
}

for (const architecture of architecturesOf(process.argv.slice(2))) {
  const executable = await buildExecutable({ architecture })
  const facts = [
    `${(executable.sizeBytes / 1e6).toFixed(1)} MB`,
    executable.isStripped ? 'stripped' : 'with symbols',
    executable.isNew ? 'built' : 'unchanged',
  ]
  console.log(`${executable.path}: ${facts.join(', ')}`)
}
