/** Go: one program, its modules pinned by `go.sum`. */
import { join } from 'node:path'
import { CLIENTS_FOLDER, cacheFolder, withLock } from './cache-folder.ts'
import type { Program } from './program.ts'
import { preparationDeadlineMs, runTool } from './run-tool.ts'

export async function prepareGoClient(version: string): Promise<Program> {
  const program = join(cacheFolder(), `go-${version}`)
  await withLock('go', preparationDeadlineMs(), () =>
    runTool({
      command: 'go',
      arguments: ['build', '-mod=readonly', '-trimpath', '-o', program, '.'],
      folder: join(CLIENTS_FOLDER, 'go'),
    }),
  )
  return { command: program, arguments: [] }
}
