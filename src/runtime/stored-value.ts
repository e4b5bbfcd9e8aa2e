import { messageOf } from '../errors.ts'
import type { MetadataStore } from '../log/index.ts'
import type { Logger } from '../logger.ts'

/**
 * A setting of the metadata store whose form its writer knows. SQLite's check of its file sees no flipped bit in a value:
 * one that cannot be read is told, and counts as not there. For what can do without.
 */
export function storedValue<T>(
  store: Pick<MetadataStore, 'setting'>,
  name: string,
  parse: (text: string) => T,
  logger: Logger,
): T | undefined {
  const text = store.setting(name)
  if (text === undefined) return undefined
  try {
    return parse(text)
  } catch (error) {
    logger.warn('edge.setting.unreadable', { name, error: messageOf(error) })
    return undefined
  }
}
