import { EdgeError } from '../../errors.ts'
import { type DescriptorCopies, NO_ID } from '../metadata/log-tables.ts'
import { formatStore, type StoreDescriptor } from './descriptor.ts'
import type { DescriptorFiles } from './descriptor-files.ts'
import { STORE_FILE } from './layout.ts'

/** Key 0 stands for "none" in the journal. */
export const FIRST_KEY = 1
/** Keys a raised floor covers: one write of `store.json` for that many partitions. Unused ones are skipped at a restart. */
const KEYS_PER_BLOCK = 64
const KEY_END = 2 ** 32

/**
 * Gives partition keys, each once for the life of the store. The floor in `store.json` is raised and synced before any key
 * below it is given, so a crash may waste keys but never repeats one.
 */
export class KeyAllocator {
  readonly #files: DescriptorFiles
  readonly #copies: DescriptorCopies
  #store: StoreDescriptor
  #nextKey: number
  /** From it on keys may have been given of which the copies, that stand in for descriptors, do not know yet. */
  #firstUncopiedKey = KEY_END

  constructor(store: StoreDescriptor, files: DescriptorFiles, copies: DescriptorCopies) {
    this.#store = store
    this.#nextKey = store.nextKeyFloor
    this.#files = files
    this.#copies = copies
  }

  get store(): StoreDescriptor {
    return this.#store
  }

  /** Lowest key that was never given. */
  get nextKey(): number {
    return this.#nextKey
  }

  /** From it on a key that no descriptor names is of a partition whose descriptor is lost; below it, of a deleted one. */
  get firstLostKey(): number {
    return this.#store.isRebuilt ? FIRST_KEY : Math.min(this.#nextKey, this.#firstUncopiedKey)
  }

  /**
   * A topic is about to be made up of which neither descriptor nor copy is left: what the journal holds of it may have keys
   * that nothing names. Durable before the topic is, after which nothing would tell. @throws EDGE_DISK_FULL, EDGE_IO.
   */
  async namesLost(): Promise<void> {
    if (!this.#store.isRebuilt) await this.#write({ ...this.#store, isRebuilt: true })
  }

  /** A topic was restored from a copy, which may be older than partitions that were added since. */
  copiedUpTo(highestKey: number): void {
    this.#firstUncopiedKey = highestKey + 1
  }

  /** All partitions whose descriptors were lost have new ones. @throws EDGE_DISK_FULL, EDGE_IO. */
  async allFound(): Promise<void> {
    this.#firstUncopiedKey = KEY_END
    if (this.#store.isRebuilt) await this.#write({ ...this.#store, isRebuilt: false })
  }

  /** Gives `count` keys, ascending. One call at a time. @throws EDGE_LIMIT_REACHED, EDGE_DISK_FULL, EDGE_IO. */
  async take(count: number): Promise<readonly number[]> {
    const end = this.#nextKey + count
    await this.#raise(end)
    const keys = Array.from({ length: count }, (_, index) => this.#nextKey + index)
    this.#nextKey = end
    return keys
  }

  /** Makes `key` the lowest that may be given, if it is not already higher: a descriptor names the one before it. */
  async skipTo(key: number): Promise<void> {
    if (key <= this.#nextKey) return
    await this.#raise(key)
    this.#nextKey = key
  }

  async #raise(end: number): Promise<void> {
    if (end > KEY_END) throw new EdgeError('EDGE_LIMIT_REACHED', 'this store has given all partition keys it can')
    if (end <= this.#store.nextKeyFloor) return
    const nextKeyFloor = Math.min(KEY_END, Math.ceil(end / KEYS_PER_BLOCK) * KEYS_PER_BLOCK)
    await this.#write({ ...this.#store, nextKeyFloor })
  }

  async #write(store: StoreDescriptor): Promise<void> {
    const body = formatStore(store)
    await this.#files.write(STORE_FILE, body)
    this.#store = store
    this.#copies.put([{ streamId: NO_ID, topicId: NO_ID, body }])
  }
}
