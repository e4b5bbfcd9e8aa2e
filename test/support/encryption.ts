/** Settings of stores with and without encryption at rest. */
import { ENCRYPTION_SETTINGS, type EncryptionSettings } from '../../src/log/index.ts'
import { defaultsOf } from '../../src/setting.ts'

/** @param number makes one key different from another. */
export const keyText = (number: number): string => Buffer.alloc(32, number).toString('base64')

export const PLAIN: EncryptionSettings = defaultsOf(ENCRYPTION_SETTINGS)
export const SEALED: EncryptionSettings = { ...PLAIN, enabled: true, key: keyText(1) }
