/**
 * Compiles `src/sdk/wire/kernel/kernel.as` to WebAssembly and writes it as a text module beside it.
 *
 *   node scripts/build-kernel.ts           writes kernel-wasm.ts
 *   node scripts/build-kernel.ts --check   fails when the written module is not what the source gives
 */
import { readFile, writeFile } from 'node:fs/promises'
import asc from 'assemblyscript/asc'
import { readArguments } from './arguments.ts'

const FOLDER = new URL('../src/sdk/wire/kernel/', import.meta.url)
const LINE_LENGTH = 100

/** @returns the text of the module that the source compiles to; the same source always gives the same text. */
export async function buildKernelModule(): Promise<string> {
  const source = await readFile(new URL('kernel.as', FOLDER), 'utf8')
  let wasm = new Uint8Array()
  const flags = [
    '-O3',
    '--noAssert',
    '--runtime',
    'stub',
    '--importMemory',
    '--enable',
    'bulk-memory',
    '--enable',
    'simd',
  ]
  const { error, stderr } = await asc.main(
    ['kernel.ts', '--outFile', 'kernel.wasm', ...flags, '--memoryBase', '1024'],
    {
      readFile: (name: string) => (name === 'kernel.ts' ? source : null),
      writeFile: (name: string, contents: string | Uint8Array) => {
        if (name === 'kernel.wasm' && typeof contents !== 'string') wasm = new Uint8Array(contents)
      },
      listFiles: () => [],
    },
  )
  if (error) throw new Error(`kernel.as does not compile: ${stderr.toString()}`, { cause: error })
  const base64 = Buffer.from(wasm).toString('base64')
  const lines = base64.match(new RegExp(`.{1,${LINE_LENGTH}}`, 'g')) ?? []
  return `/** Made by \`scripts/build-kernel.ts\` from \`kernel.as\`; not to be edited. ${wasm.length} bytes of WebAssembly. */
export const KERNEL_WASM_BASE64 = [
${lines.map((line) => `  '${line}',`).join('\n')}
].join('')
`
}

if (import.meta.main) {
  const { values } = readArguments('node scripts/build-kernel.ts [--check]', {
    options: { check: { type: 'boolean' } },
  })
  const target = new URL('kernel-wasm.ts', FOLDER)
  const text = await buildKernelModule()
  if (values.check) {
    if (text !== (await readFile(target, 'utf8'))) {
      console.error('kernel-wasm.ts is not what kernel.as compiles to: run node scripts/build-kernel.ts')
      process.exitCode = 1
    }
  } else {
    await writeFile(target, text)
  }
}
