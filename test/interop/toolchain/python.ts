/** Python: each version of the wheel in an environment of its own. Versions and hashes stand in the requirements. */
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { CLIENTS_FOLDER, cacheFolder, hashOfFiles, withLock } from './cache-folder.ts'
import type { Program } from './program.ts'
import { preparationDeadlineMs, runTool } from './run-tool.ts'

/** @returns the interpreter that has the client, without a program. */
export async function preparePython(version: string): Promise<Program> {
  const requirements = `python/requirements-${version}.txt`
  const name = `python-${version}-${hashOfFiles([requirements])}`
  const folder = join(cacheFolder(), name)
  const python = join(folder, 'bin/python')
  await withLock(name, preparationDeadlineMs(), async () => {
    if (existsSync(`${folder}.complete`)) return
    rmSync(folder, { recursive: true, force: true })
    await runTool({ command: 'python3', arguments: ['-m', 'venv', folder] })
    await runTool({
      command: python,
      arguments: ['-m', 'pip', 'install', '--quiet', '--require-hashes', '-r', join(CLIENTS_FOLDER, requirements)],
    })
    await runTool({ command: 'touch', arguments: [`${folder}.part`] })
    renameSync(`${folder}.part`, `${folder}.complete`)
  })
  return { command: python, arguments: [], environment: { PYTHONDONTWRITEBYTECODE: '1' } }
}

export async function preparePythonClient(version: string): Promise<Program> {
  const { command, environment = {} } = await preparePython(version)
  return { command, arguments: [join(CLIENTS_FOLDER, 'python/main.py')], environment }
}
