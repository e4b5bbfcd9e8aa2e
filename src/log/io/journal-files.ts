/**
 * The journal's files as a set: which one is active, which come next, which are to be repacked. Freed and prepared oldest
 * first, and never past a failure: recovery relies on the journal having no hole in its generations' order, and blocks in
 * segments above the journal's first offset are thrown away because the journal has them.
 */
import { EdgeError, toEdgeError } from '../../errors.ts'
import { isInPlace } from '../../file-identity.ts'
import type { Written } from '../core/flash-budget.ts'
import { JOURNAL_HEADER_SIZE } from '../core/journal-format.ts'
import { MAX_JOURNAL_FILE_NUMBER } from '../core/journal-index.ts'
import type { FileSystem } from './file-system.ts'
import { createZeroed, JournalFile, journalPath } from './journal-file.ts'
import type { StoreKeys } from './store-keys.ts'

export interface JournalFilesOptions {
  readonly fileSystem: FileSystem
  readonly storeIdBytes: Uint8Array
  readonly fileSize: number
  readonly keys: StoreKeys
  readonly written: Written
  readonly randomU64: () => bigint
  /** Lowest partition key that was never given. */
  readonly keyFloor: () => number
  /** Of the next group that is written. */
  readonly nextSequence: () => number
  /**
   * Before free files are prepared: what else only they told is kept elsewhere.
   *
   * @throws EDGE_IO, EDGE_DISK_FULL: they stay as they are.
   */
  readonly recycling: () => void
  /**
   * Other generations than before: to be noted, so that a file that is lost is missed. Never throws.
   *
   * @param isDurable a file is about to be removed: an older note must not come back with a power cut.
   */
  readonly changed: (generations: readonly number[], isDurable: boolean) => void
  /** Rule left out by a test: a file that cannot be prepared does not keep younger ones from being recycled. */
  readonly isOrderIgnored?: boolean
}

/** A file's header stands in it twice. */
const HEADERS = 2
/** The file and its folder. */
const SYNCS_OF_MAKING = 2
/** Between two looks at a file's name: at a thousand syncs a second, one for each takes a tenth of the time. */
const PLACE_LOOK_US = 50_000

export class JournalFiles {
  readonly #options: JournalFilesOptions
  #files: JournalFile[]
  #generation: number
  /** An old name must be gone for good before anything else is recycled: a crash could bring its groups back. */
  #isNameDoubtful = false
  /** What lay under the name of each file when it was opened. */
  readonly #identities = new Map<JournalFile, string | undefined>()
  /** Monotonic; of the last look that found a file in its place. */
  #placeLookUs = Number.NEGATIVE_INFINITY

  constructor(options: JournalFilesOptions, files: readonly JournalFile[]) {
    this.#options = options
    this.#files = [...files]
    this.#generation = files.reduce((highest, file) => Math.max(highest, file.generation), 0)
    for (const file of files) this.#noteIdentity(file)
  }

  get all(): readonly JournalFile[] {
    return this.#files
  }

  get active(): JournalFile | undefined {
    return this.#files.find((file) => file.state === 'active')
  }

  get spareCount(): number {
    return this.#files.filter((file) => file.state === 'spare').length
  }

  get usedBytes(): number {
    return this.#files.reduce(
      (sum, file) => sum + (file.state === 'active' || file.state === 'sealed' ? file.position : 0),
      0,
    )
  }

  get totalBytes(): number {
    return this.#files.reduce((sum, file) => sum + file.size, 0)
  }

  byNumber(number: number): JournalFile | undefined {
    return this.#files.find((file) => file.number === number)
  }

  /** Sealed files, oldest first, up to the first one that is held. */
  repackable(isHoldIgnored = false): readonly JournalFile[] {
    const sealed = byAge(this.#files.filter((file) => file.state === 'sealed'))
    const held = isHoldIgnored ? -1 : sealed.findIndex((file) => file.isHeld)
    return held < 0 ? sealed : sealed.slice(0, held)
  }

  /** All groups that waited to be written again are synced elsewhere. */
  release(): void {
    for (const file of this.#files) file.isHeld = false
  }

  /** @returns the next spare as the active file, or undefined when there is none. */
  activate(): JournalFile | undefined {
    const spare = byAge(this.#files.filter((file) => file.state === 'spare'))[0]
    if (spare !== undefined) spare.state = 'active'
    return spare
  }

  /** Prepares all free files; stops at the first that cannot be. @throws EDGE_IO, EDGE_DISK_FULL. */
  async prepareFree(): Promise<void> {
    let failure: EdgeError | undefined
    const generationBefore = this.#generation
    if (this.#isNameDoubtful) await this.#syncNames()
    const free = byAge(this.#files.filter((each) => each.state === 'free'))
    if (free.length > 0) this.#options.recycling()
    for (const file of free) {
      try {
        await this.#prepare(file)
      } catch (error) {
        failure ??= toEdgeError(error)
        if (!this.#options.isOrderIgnored) break
      }
    }
    if (this.#generation !== generationBefore) this.noteGenerations()
    if (failure !== undefined && !this.#options.isOrderIgnored) throw failure
  }

  /** Makes one more file, durable with its name. */
  async add(): Promise<void> {
    const { fileSystem, fileSize, written } = this.#options
    // From the folder: what an earlier try left behind, and could not remove, is there as well.
    const used = new Set(fileSystem.list('journal').map(({ name }) => name))
    let number = 0
    while (used.has(String(number))) number++
    if (number > MAX_JOURNAL_FILE_NUMBER) throw new EdgeError('EDGE_IO', 'the journal folder is full of files')
    const path = journalPath(number)
    const handle = await createZeroed(fileSystem, path, fileSize)
    written(fileSize, SYNCS_OF_MAKING)
    try {
      await fileSystem.syncDirectory('journal')
    } catch (error) {
      handle.close()
      fileSystem.unlink(path)
      throw error
    }
    const file = new JournalFile(number, handle, { size: fileSize, generation: 0, salt: 0n })
    this.#files.push(file)
    this.#noteIdentity(file)
  }

  /**
   * A file that was deleted or moved away takes syncs as before, and what it holds is not there at the next start. Looks
   * now and then, and after it has found one each time.
   *
   * @returns EDGE_IO where another one, or none, lies in its place.
   */
  displaced(file: JournalFile, nowUs: number): EdgeError | null {
    if (nowUs - this.#placeLookUs < PLACE_LOOK_US) return null
    const path = journalPath(file.number)
    if (isInPlace(this.#identities.get(file), this.#options.fileSystem.identity(path))) {
      this.#placeLookUs = nowUs
      return null
    }
    this.#placeLookUs = Number.NEGATIVE_INFINITY
    const text = `${path} was deleted or moved away while the edge runs`
    return new EdgeError('EDGE_IO', text, { details: { code: 'ENOENT', path, isDisplaced: true } })
  }

  #noteIdentity(file: JournalFile): void {
    this.#identities.set(file, this.#options.fileSystem.identity(journalPath(file.number)))
  }

  /**
   * Takes the oldest spare away while another is left: failures had made more files than are wanted. The newest header
   * stays, which says where the chain begins.
   *
   * @returns whether it did. @throws EDGE_IO.
   */
  async removeSpare(): Promise<boolean> {
    const spares = byAge(this.#files.filter((file) => file.state === 'spare'))
    const [oldest] = spares
    if (oldest === undefined || spares.length < 2) return false
    this.#forget(oldest)
    oldest.handle.close()
    const { fileSystem } = this.#options
    fileSystem.unlink(journalPath(oldest.number))
    await fileSystem.syncDirectory('journal')
    return true
  }

  close(): void {
    for (const file of this.#files) file.handle.close()
  }

  /** Tells which files may hold something. The header of a free one may be on its way to the disk. */
  noteGenerations(isDurable = false): void {
    const held = this.#files.filter(({ state }) => state !== 'free')
    this.#options.changed(
      held.map(({ generation }) => generation),
      isDurable,
    )
  }

  /** Noted before it goes, which failures alone bring about: it is not to be missed. */
  #forget(file: JournalFile): void {
    this.#drop(file)
    this.noteGenerations(true)
  }

  #drop(file: JournalFile): void {
    this.#files = this.#files.filter((each) => each !== file)
    this.#identities.delete(file)
  }

  async #syncNames(): Promise<void> {
    await this.#options.fileSystem.syncDirectory('journal')
    this.#isNameDoubtful = false
  }

  /** With which the chain of groups must begin, or one of them is lost. */
  #firstSequence(): number {
    return this.#files
      .filter(({ state }) => state !== 'free')
      .reduce((first, file) => Math.min(first, file.firstSequence ?? first), this.#options.nextSequence())
  }

  async #prepare(file: JournalFile): Promise<void> {
    if (file.hasFailed || file.size !== this.#options.fileSize) return this.#replace(file)
    const { storeIdBytes, randomU64, keyFloor, keys, written } = this.#options
    const generation = ++this.#generation
    const firstSequence = this.#firstSequence()
    await file.prepare({ storeIdBytes, generation, salt: randomU64(), keyFloor: keyFloor(), firstSequence }, keys)
    written(HEADERS * JOURNAL_HEADER_SIZE, 1)
  }

  /**
   * A failed file, or one of another size: its blocks are not written to again. The new one comes first, since its header
   * says where the chain begins without the old one; a full disk has no room for both.
   */
  async #replace(file: JournalFile): Promise<void> {
    const isMade = await this.#makeSpare().then(
      () => true,
      (error) => {
        if (toEdgeError(error).code !== 'EDGE_DISK_FULL') throw error
        return false
      },
    )
    file.handle.close()
    this.#forget(file)
    this.#options.fileSystem.unlink(journalPath(file.number))
    this.#isNameDoubtful = true
    await this.#syncNames()
    if (!isMade) await this.#makeSpare()
  }

  async #makeSpare(): Promise<void> {
    await this.add()
    const made = this.#files.at(-1)
    if (made === undefined) throw new EdgeError('EDGE_INTERNAL', 'the journal file just made is missing')
    try {
      await this.#prepare(made)
    } catch (error) {
      // Tried again with another one: each try would leave one more.
      this.#drop(made)
      made.handle.close()
      this.#options.fileSystem.unlink(journalPath(made.number))
      throw error
    }
  }
}

const byAge = (files: readonly JournalFile[]): JournalFile[] => [...files].sort((a, b) => a.generation - b.generation)
