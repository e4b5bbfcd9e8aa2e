/** Builds the executables: `npm run build` both, `npm run build -- arm64` one. */
import { readArguments, refuseArguments } from './arguments.ts'
import { ARCHITECTURES, type Architecture } from './executable/base-node.ts'
import { buildExecutable } from './executable/build.ts'

const USAGE = 'npm run build -- [x64] [arm64]'

function architecturesOf(names: readonly string[]): readonly Architecture[] {
  if (names.length === 0) return ARCHITECTURES
  return names.map((name) => {
    const architecture = ARCHITECTURES.find((known) => known === name)
    return architecture ?? refuseArguments(USAGE, `there is no architecture ${name}`)
  })
}

for (const architecture of architecturesOf(readArguments(USAGE, { allowPositionals: true }).positionals)) {
  const executable = await buildExecutable(architecture)
  const facts = [
    `${(executable.sizeBytes / 1e6).toFixed(1)} MB`,
    executable.isStripped ? 'stripped' : 'with symbols',
    executable.isNew ? 'built' : 'unchanged',
  ]
  console.log(`${executable.path}: ${facts.join(', ')}`)
}
