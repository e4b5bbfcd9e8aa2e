/** Java: compiled by Maven, with its libraries beside the program. Every version is exact in `pom.xml`. */
import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { CLIENTS_FOLDER, cacheFolder, hashOfFiles, withLock } from './cache-folder.ts'
import type { Program } from './program.ts'
import { preparationDeadlineMs, runTool } from './run-tool.ts'

const SOURCES = 'java/src/main/java/interop'

export async function prepareJavaClient(version: string): Promise<Program> {
  const sources = readdirSync(join(CLIENTS_FOLDER, SOURCES)).sort()
  const name = `java-${version}-${hashOfFiles(['java/pom.xml', ...sources.map((file) => `${SOURCES}/${file}`)])}`
  const folder = join(cacheFolder(), name)
  await withLock('java', preparationDeadlineMs(), async () => {
    if (existsSync(folder)) return
    const part = `${folder}.part`
    rmSync(part, { recursive: true, force: true })
    await runTool({
      command: 'mvn',
      arguments: [
        '--batch-mode',
        '--quiet',
        `-Dinterop.folder=${part}`,
        '-f',
        join(CLIENTS_FOLDER, 'java/pom.xml'),
        'package',
      ],
    })
    renameSync(part, folder)
  })
  return {
    command: 'java',
    arguments: ['-cp', `${join(folder, 'classes')}:${join(folder, 'libraries/*')}`, 'interop.Main'],
  }
}
