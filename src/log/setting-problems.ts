/** What is wrong with settings of the log beyond the bounds of single keys, found without touching a data folder. */
import { toEdgeError } from '../errors.ts'
import { checkSchedule } from './cron.ts'
import type { EncryptionSettings } from './encryption-settings.ts'
import { readStoreKeys } from './io/key-source.ts'
import type { RetentionSettings } from './retention-settings.ts'

/** @returns a line for each, as `openLog` would refuse them one by one. */
export async function findLogProblems(settings: {
  readonly encryption: EncryptionSettings
  readonly retention: RetentionSettings
}): Promise<readonly string[]> {
  const checks = [() => readStoreKeys(settings.encryption), () => checkSchedule(settings.retention.schedule)]
  const problems: string[] = []
  for (const check of checks) {
    try {
      await check()
    } catch (error) {
      problems.push(toEdgeError(error).message)
    }
  }
  return problems
}
