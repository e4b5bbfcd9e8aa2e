/** How an executable runs on this machine: by itself, or where it is of another architecture by qemu's user emulation. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Architecture } from './base-node.ts'

/** Libraries of the other architecture, where Debian's cross packages put them. */
const EMULATORS: Readonly<Record<Architecture, readonly [command: string, libraries: string]>> = {
  arm64: ['qemu-aarch64-static', '/usr/aarch64-linux-gnu'],
  x64: ['qemu-x86_64-static', '/usr/x86_64-linux-gnu'],
}

/** @returns the words that stand before an executable of that architecture, or what is missing to run it. */
export function runnerFor(architecture: Architecture): { words: readonly string[] } | { missing: string } {
  if (architecture === process.arch) return { words: [] }
  const [emulator, libraries] = EMULATORS[architecture]
  if (spawnSync(emulator, ['--version']).error !== undefined) return { missing: `${emulator} is not installed` }
  // The last of the libraries that are needed: it comes with none of the others.
  if (!existsSync(join(libraries, 'lib/libatomic.so.1'))) return { missing: `${libraries} holds no libatomic.so.1` }
  return { words: [emulator, '-L', libraries] }
}
