/**
 * Reads the journal's files at open: headers, groups, then the batches of the groups that count. Decides nothing itself;
 * `core/journal-scan.ts` does. One file at a time lies in memory, and only while it is read.
 */
import { systemCodeOf } from '../../errors.ts'
import {
  BATCH_ALIGNMENT,
  BATCH_HEADER_SIZE,
  type BatchHeader,
  batchSize,
  decodeBatchHeader,
  isBatchHeaderIntact,
} from '../core/batch-header.ts'
import { areaOf, type ByteArea } from '../core/byte-area.ts'
import type { Checksum } from '../core/checksum.ts'
import type { Decoded } from '../core/header-sum.ts'
import {
  decodeGroupHeader,
  FIRST_GROUP_AT,
  GROUP_ALIGNMENT,
  GROUP_HEADER_SIZE,
  GROUP_MAGIC_AT,
  GROUP_MAGIC_TEXT,
  type GroupHeader,
  type JournalHeader,
  nextPositions,
  seedOf,
} from '../core/journal-format.ts'
import { MAX_JOURNAL_FILE_NUMBER } from '../core/journal-index.ts'
import {
  type ChainGap,
  type ChainLink,
  type FoundFile,
  type FoundGroup,
  type JournalScan,
  type ScanRules,
  scanJournal,
} from '../core/journal-scan.ts'
import { TAG_SIZE } from '../core/sealed-body.ts'
import type { FileSystem, LogFile } from './file-system.ts'
import { type Given, readGiven } from './given-pages.ts'
import { JournalFile, journalPath } from './journal-file.ts'
import { readJournalHeader } from './journal-header.ts'
import { openGroupInPlace } from './sealed-groups.ts'
import { type FileCipher, noKeys, type StoreKeys } from './store-keys.ts'

export interface FoundJournal {
  readonly files: readonly JournalFile[]
  readonly scan: JournalScan
  /** Names in the journal's folder that are no journal files. */
  readonly strangers: readonly string[]
  /** Generations of the files that are there. */
  readonly generations: readonly number[]
  /** Files whose header cannot be read though something is written there, as when a power cut came while it was written. */
  readonly garbledNames: readonly string[]
  /** Files whose header is read from its copy. */
  readonly copiedNames: readonly string[]
  /** Files in which a header has a flipped bit: their own, or that of a group. */
  readonly mendedNames: readonly string[]
  /** Files that end before the size their header says. */
  readonly cutShort: readonly CutFile[]
  /** Where the chain of groups must begin, as the newest header says; 0: nobody says it. */
  readonly firstSequence: number
  /** What the newest header says of the store. */
  readonly witness: { readonly storeId: Uint8Array; readonly nextKey: number } | undefined
}

export interface CutFile {
  readonly name: string
  readonly expectedSize: number
  readonly foundSize: number
}

/** A batch as it lies in the journal. */
export interface FoundBatch {
  readonly header: BatchHeader
  readonly fileNumber: number
  readonly position: number
  /** Header and padding included. */
  readonly size: number
  readonly boot: number
  /** Of its group. */
  readonly sequence: number
  readonly groupLength: number
  /** The header is intact, the body is not: it is visited so that its offsets are known to be gone. */
  readonly isDamaged: boolean
  /** A later group says that it had been synced. */
  readonly isProven: boolean
  /** The file's bytes while the visit lasts. */
  readonly area: ByteArea
}

export interface DamageTally {
  /** Bytes in which records may have lain that cannot be assigned to any partition. */
  lostBytes: number
  damagedBatches: number
  /** The last group from which something was lost. */
  lastSequence: number
  /** Groups whose checksum fits and which their key does not open: no damage by chance, and no torn tail. */
  readonly unopened: UnopenedGroup[]
}

export interface UnopenedGroup {
  readonly file: JournalFile
  readonly position: number
  readonly length: number
  readonly reason: string
}

interface Setting {
  readonly fileSystem: FileSystem
  /** Undefined: any store's. */
  readonly storeIdBytes: Uint8Array | undefined
  readonly checksum: Checksum
  /** Sealed files of other keys are known by their groups alone. */
  readonly keys?: StoreKeys
  readonly rules?: ScanRules
}

/** Only what a journal file is called: `007` would be read as `7`, once more. */
const isFileName = (name: string): boolean =>
  /^\d{1,3}$/.test(name) && String(Number(name)) === name && Number(name) <= MAX_JOURNAL_FILE_NUMBER

/** @throws EDGE_STORE_NEWER before anything is written. */
export function readJournal(setting: Setting): FoundJournal {
  const files: JournalFile[] = []
  const found: FoundFile[] = []
  const strangers: string[] = []
  const garbledNames: string[] = []
  const copiedNames: string[] = []
  const mendedNames: string[] = []
  const cutShort: CutFile[] = []
  const buffer = new FileBuffer()
  let newest: Partial<JournalHeader> & Pick<JournalHeader, 'generation'> = { generation: 0 }
  for (const { name, isDirectory } of setting.fileSystem.list('journal')) {
    if (isDirectory || !isFileName(name)) {
      strangers.push(name)
      continue
    }
    const number = Number(name)
    const handle = openGiven(setting.fileSystem, journalPath(number))
    if (handle === undefined) {
      garbledNames.push(name)
      continue
    }
    const { header, isBlank } = readJournalHeader(handle, journalPath(number), setting.storeIdBytes)
    const { area, refused } = buffer.read(handle)
    if (header !== undefined && header.generation > newest.generation) newest = { ...header }
    const { generation = 0, salt = 0n, encryptionKeyId = 0, isCopy = false } = header ?? {}
    const cipher = header && (setting.keys ?? noKeys).cipherFor(header.bytes, encryptionKeyId)
    const file = new JournalFile(number, handle, { size: area.bytes.length, generation, salt, encryptionKeyId, cipher })
    // Never prepared: who made it may have died at a sync that failed, and it reads well only until the cache is gone. One
    // of which a page went bad is made anew as well.
    file.hasFailed = isBlank || isCopy || refused.length > 0
    files.push(file)
    const foundSize = area.bytes.length
    if (header === undefined && !isBlank) garbledNames.push(name)
    if (isCopy) copiedNames.push(name)
    if (header === undefined) continue
    const groups = findGroups(area, { generation, salt }, setting.checksum)
    if (header.isMended || groups.some((group) => group.header.isMended)) mendedNames.push(name)
    found.push({ id: number, generation, groups, refused })
    file.unreadSize = Math.max(0, (groups[0]?.header.position ?? foundSize) - FIRST_GROUP_AT)
    // One without a group where the first one stands was never written to.
    const mayHold = groups.length > 0 || foundSize < FIRST_GROUP_AT + GROUP_HEADER_SIZE
    if (mayHold && foundSize < header.fileSize) cutShort.push({ name, expectedSize: header.fileSize, foundSize })
  }
  buffer.release()
  const { storeIdBytes: storeId, keyFloor: nextKey = 0 } = newest
  // A header that cannot be read may be a newer one.
  const firstSequence = garbledNames.length === 0 ? (newest.firstSequence ?? 0) : 0
  const witness = storeId === undefined ? undefined : { storeId, nextKey }
  const generations = found.map(({ generation }) => generation)
  const isCopied = ({ id }: FoundFile): boolean => copiedNames.includes(String(id))
  const scan = scanJournal(
    found.map((file) => (isCopied(file) ? withoutRecycled(file, newest.firstSequence ?? 0) : file)),
    setting.rules,
  )
  return {
    files,
    scan,
    strangers,
    generations,
    garbledNames,
    copiedNames,
    mendedNames,
    cutShort,
    firstSequence,
    witness,
  }
}

/**
 * The copy may be that of an earlier life, whose groups lie in segments: once a younger file was prepared, its header says
 * where the chain begins without them. Counted again they would make the journal begin there, and cut segments off.
 */
function withoutRecycled(file: FoundFile, firstSequence: number): FoundFile {
  const groups = file.groups.filter(({ header }) => firstSequence > 0 && header.sequence >= firstSequence)
  return { ...file, groups }
}

/** The first look: nothing is opened for good, nothing is touched. @throws EDGE_STORE_NEWER. */
export function checkJournalVersions(fileSystem: FileSystem): void {
  for (const { name, isDirectory } of fileSystem.list('journal')) {
    if (isDirectory || !isFileName(name)) continue
    const path = journalPath(Number(name))
    const handle = openGiven(fileSystem, path)
    try {
      if (handle !== undefined) readJournalHeader(handle, path, undefined)
    } finally {
      handle?.close()
    }
  }
}

/** What the device says of a file whose inode went bad: nobody can give that back. Rights can be. */
const BAD_CODES: ReadonlySet<string> = new Set(['EIO', 'EUCLEAN'])

/** @returns undefined where the device has lost it. @throws EDGE_IO for every other reason. */
function openGiven(fileSystem: FileSystem, path: string): LogFile | undefined {
  try {
    return fileSystem.open(path, 'existing')
  } catch (error) {
    if (!BAD_CODES.has(systemCodeOf(error))) throw error
    return undefined
  }
}

/** Visits every readable batch of the groups that count, in order; those of sealed groups as they are when opened. */
export function visitBatches(
  journal: FoundJournal,
  checksum: Checksum,
  visit: (batch: FoundBatch) => void,
): DamageTally {
  const tally: DamageTally = { lostBytes: 0, damagedBatches: 0, lastSequence: 0, unopened: [] }
  const { chain, gaps, hidden, proof } = journal.scan
  const buffer = new FileBuffer()
  let loaded: { file: JournalFile; area: ByteArea } | undefined
  let before = journal.firstSequence > 0 ? journal.firstSequence - 1 : undefined
  for (const link of chain) {
    const isBroken = before !== undefined && link.header.sequence > before + 1
    // Proven groups are missing. Inside a file the gap is searched below; of those between files nothing is left.
    if (isBroken) tally.lastSequence = link.header.sequence - 1
    before = link.header.sequence
    if (loaded?.file.number !== link.fileId) {
      const file = journal.files.find((each) => each.number === link.fileId)
      if (file === undefined) continue
      if (isBroken) tally.lostBytes += sizeBetween(journal.files, loaded?.file, file)
      loaded = { file, area: buffer.read(file.handle).area }
    }
    const { file, area } = loaded
    file.firstSequence ??= link.header.sequence
    const { header } = link
    const group = {
      seed: seedOf(header.sessionSalt),
      boot: header.boot,
      sequence: header.sequence,
      length: header.length,
    }
    for (const gap of gaps.filter((each) => isBefore(each, file, header))) {
      file.noteGroup(gap.from, header.sessionSalt, header.boot)
      // The group's header is gone, its batches may not be: those of the same session are recognised by their salt.
      visitRange(
        { area, file, from: gap.from, end: gap.end, group: { ...group, sequence: header.sequence - 1 } },
        visitChecked,
      )
      tally.lostBytes += gap.end - gap.from
      tally.lastSequence = header.sequence - 1
    }
    file.noteGroup(header.position, header.sessionSalt, header.boot)
    file.position = header.position + header.length
    const isProven = header.sequence <= proof
    const range = { area, file, from: header.position + GROUP_HEADER_SIZE, end: header.position + header.length, group }
    const { cipher } = file
    if (cipher !== undefined) {
      const plainEnd = openSealed(link, { file, area, cipher })
      if (plainEnd !== undefined) visitRange({ ...range, end: plainEnd }, (batch) => visit({ ...batch, isProven }))
      continue
    }
    if (link.isWhole) {
      visitRange(range, (batch) => visit({ ...batch, isProven }))
      continue
    }
    tally.lostBytes += visitRange(range, visitChecked)
    tally.lastSequence = header.sequence
  }
  if (before !== undefined && before < proof) {
    tally.lastSequence = proof
    if (loaded !== undefined) tally.lostBytes += loaded.file.size - loaded.file.position
  }
  for (const { fileId, from } of hidden) {
    const file = journal.files.find((each) => each.number === fileId)
    tally.lostBytes += (file?.size ?? from) - from
    // Nobody knows how many groups there were.
    tally.lastSequence = Number.MAX_SAFE_INTEGER
  }
  buffer.release()
  return tally

  /** A part of a sealed group cannot be told from a forgery: all of it or nothing. @returns where its batches end. */
  function openSealed({ header, isWhole }: ChainLink, { file, area, cipher }: SealedPlace): number | undefined {
    const { position, length, sequence } = header
    if (isWhole) {
      const failure = openGroupInPlace(cipher, area, position, header)
      if (failure === undefined) return position + length - TAG_SIZE
      tally.unopened.push({ file, position, length, reason: failure.message })
    }
    tally.lostBytes += length - GROUP_HEADER_SIZE
    tally.lastSequence = sequence
    return undefined
  }

  function visitChecked(batch: FoundBatch): void {
    const { header, position, area } = batch
    const bodyAt = position + BATCH_HEADER_SIZE
    const crc = header.bodySize === 0 ? 0 : checksum(area.bytes, bodyAt, bodyAt + header.bodySize, 0)
    const isDamaged = crc !== header.bodyCrc
    if (isDamaged) tally.damagedBatches++
    visit({ ...batch, isDamaged })
  }
}

/** Bytes that groups may have filled which follow the last one found in `last` and precede `next`. */
function sizeBetween(files: readonly JournalFile[], last: JournalFile | undefined, next: JournalFile): number {
  const oldest = last?.generation ?? 0
  const between = files.filter(({ generation }) => oldest < generation && generation < next.generation)
  return between.reduce((sum, { unreadSize }) => sum + unreadSize, last === undefined ? 0 : last.size - last.position)
}

const isBefore = (gap: ChainGap, file: JournalFile, group: GroupHeader): boolean =>
  gap.fileId === file.number && gap.end === group.position

/**
 * Goes from batch to batch; where a header is damaged, on to the next intact one at steps of 8.
 *
 * @returns bytes passed over without a batch.
 */
function visitRange(range: GroupRange, visit: (batch: FoundBatch) => void): number {
  const { area, file, end, group } = range
  let lost = 0
  let position = range.from
  while (position + BATCH_HEADER_SIZE <= end) {
    const header = isBatchHeaderIntact(area, position, group.seed) ? decodeBatchHeader(area, position, end) : undefined
    if (header === undefined) {
      lost += BATCH_ALIGNMENT
      position += BATCH_ALIGNMENT
      continue
    }
    const size = batchSize(header.bodySize)
    const { boot, sequence, length: groupLength } = group
    const place = { fileNumber: file.number, position, size, area }
    visit({ header, ...place, boot, sequence, groupLength, isProven: true, isDamaged: false })
    position += size
  }
  return lost
}

interface SealedPlace {
  readonly file: JournalFile
  readonly area: ByteArea
  readonly cipher: FileCipher
}

interface GroupRange {
  readonly area: ByteArea
  readonly file: JournalFile
  readonly from: number
  readonly end: number
  readonly group: { readonly seed: number; readonly boot: number; readonly sequence: number; readonly length: number }
}

interface ReadGroup extends FoundGroup {
  readonly header: Decoded<GroupHeader>
}

function findGroups(area: ByteArea, file: { generation: number; salt: bigint }, checksum: Checksum): ReadGroup[] {
  const groups = new Map<number, ReadGroup>()
  const size = area.bytes.length
  const look = (position: number): void => {
    if (groups.has(position) || position + GROUP_HEADER_SIZE > size) return
    const header = decodeGroupHeader(area, position, file, position, size)
    if (header === undefined) return
    const crc = checksum(area.bytes, position + GROUP_HEADER_SIZE, position + header.length, 0)
    groups.set(position, { header, isWhole: crc === header.bodyCrc })
  }
  for (const position of groupCandidates(area.bytes)) look(position)
  // The bit that flipped may be one of those that the search goes by: then the group before says where to look.
  look(FIRST_GROUP_AT)
  for (const { header } of groups.values()) for (const position of nextPositions(header)) look(position)
  return [...groups.values()].sort((a, b) => a.header.position - b.header.position)
}

/**
 * Positions at which a group may begin. Node's search leaps over what has never been written: a step for each of a file's
 * 16,384 places kept V8's optimizing compiler busy at every start, and its 4.3 MiB of code in memory from then on.
 */
function* groupCandidates({ buffer, byteOffset, byteLength }: Uint8Array): Generator<number> {
  const bytes = Buffer.from(buffer, byteOffset, byteLength)
  let from = FIRST_GROUP_AT
  for (;;) {
    const position = bytes.indexOf(GROUP_MAGIC_TEXT, from + GROUP_MAGIC_AT, 'latin1') - GROUP_MAGIC_AT
    if (position < FIRST_GROUP_AT || position + GROUP_HEADER_SIZE > byteLength) return
    if (position % GROUP_ALIGNMENT === 0) yield position
    from = position + 1
  }
}

/** One buffer for file after file: a new one of megabytes for each would stay until the collector comes. */
class FileBuffer {
  #bytes: Uint8Array<ArrayBuffer> = new Uint8Array(0)

  /** @returns the whole file, until the next is read; zeros for the page of the header, which is read by itself. */
  read(handle: JournalFile['handle']): { readonly area: ByteArea; readonly refused: Given['refused'] } {
    const fileSize = handle.size()
    if (this.#bytes.length < fileSize) this.#bytes = new Uint8Array(fileSize)
    this.#bytes.fill(0, 0, FIRST_GROUP_AT)
    if (fileSize <= FIRST_GROUP_AT) return { area: areaOf(this.#bytes.subarray(0, fileSize)), refused: [] }
    const { size, refused } = readGiven(handle, this.#bytes.subarray(FIRST_GROUP_AT, fileSize), FIRST_GROUP_AT)
    return { area: areaOf(this.#bytes.subarray(0, FIRST_GROUP_AT + size)), refused }
  }

  /** Gives the memory back without waiting for the collector. */
  release(): void {
    this.#bytes.buffer.transfer(0)
    this.#bytes = new Uint8Array(0)
  }
}
