/** Settings of encryption at rest: section `[log.encryption]` of the configuration. */
import { boolean, secret, text, type ValuesOf } from '../setting.ts'

export const ENCRYPTION_SETTINGS = {
  enabled: boolean(
    false,
    'Seal the bodies of new journal and segment files with AES-256-GCM; names, numbers and times stay readable.',
  ),
  key_file: text('', 'File of the key: 32 bytes, raw or in base64. Instead of `key`, not beside it.'),
  key: secret('', 'The key: 32 bytes in base64. Still needed after turning encryption off, for files sealed before.'),
  previous_keys: secret('', 'Older keys in base64, apart by commas: they open files that were sealed with them.'),
} as const

export type EncryptionSettings = ValuesOf<typeof ENCRYPTION_SETTINGS>
