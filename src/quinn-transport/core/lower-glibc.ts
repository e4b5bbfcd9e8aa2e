/**
 * Makes a shared object that asks for glibc 2.38 load where there is 2.34: Debian 12, Ubuntu 22.04, RHEL 9.
 *
 * The published addon of `@moq/web-transport` needs 2.38 for two names only, `__isoc23_strtol` and `__isoc23_sscanf`: what
 * C23 headers call `strtol` and `sscanf`. They are bound to the old names, which differ from them in one thing: they do
 * not read `0b` as the beginning of a binary number. Nothing moves, nothing grows; any other new name is refused, so that
 * a function which really is missing cannot be waved through.
 *
 * Relies on the names ending in the classic ones (`__isoc23_` + `strtol`), so that a symbol is renamed by moving its
 * pointer into the string table. Pure: bytes in, bytes out.
 */
import { EdgeError } from '../../errors.ts'

/** SHA-256 of the published files this was checked with; others are refused by whoever loads them. */
export const KNOWN_ADDON_DIGESTS: Readonly<Record<string, string>> = {
  x64: '6953b1d57f2887cd74885cb3c2d13c314899baaa0513b6069c65c4b3b3b5bcf4',
  arm64: 'a1a729b47ad69006803e28388a69948b2188bb346599b972ecb1bcc59a7f8efc',
}

/** The other addons and Node's own functions need this much anyway. */
const GLIBC_CEILING = [2, 34] as const
const C23_PREFIX = '__isoc23_'

const SECTION_DYNAMIC_SYMBOLS = 11
const SECTION_VERSION_NEEDS = 0x6ffffffe
const SECTION_VERSION_OF_SYMBOLS = 0x6fffffff
const SECTION_HEADER_SIZE = 64
const SYMBOL_SIZE = 24
const VERSION_INDEX_MASK = 0x7fff

interface Section {
  readonly type: number
  readonly position: number
  readonly size: number
  readonly link: number
  readonly count: number
}

/** One version of one library that the file asks for: an `Elf64_Vernaux`. */
interface VersionNeed {
  readonly position: number
  readonly library: string
  readonly version: string
  readonly index: number
}

export interface LoweredAddon {
  readonly bytes: Uint8Array
  /** What was bound to an older name, such as `__isoc23_strtol@GLIBC_2.38 -> strtol@GLIBC_2.2.5`; empty when nothing had to be. */
  readonly changes: readonly string[]
}

/** @throws {EdgeError} EDGE_FEATURE_MISSING when the file is no such ELF file or needs more than the names that can be lowered. */
export function lowerGlibc(original: Uint8Array): LoweredAddon {
  // Not `slice`: of a `Buffer` it is a view of the caller's bytes.
  const bytes = new Uint8Array(original)
  const view = new DataView(bytes.buffer)
  const sections = parseSections(view)
  const symbols = sectionOf(sections, SECTION_DYNAMIC_SYMBOLS)
  const versionOfSymbols = sectionOf(sections, SECTION_VERSION_OF_SYMBOLS)
  const strings = sections[symbols.link]
  if (strings === undefined) throw refusal('its dynamic symbols have no names')
  const nameAt = (offset: number): string => textAt(bytes, strings.position + offset)

  const needs = parseVersionNeeds(view, sectionOf(sections, SECTION_VERSION_NEEDS), nameAt)
  const ofLibc = needs.filter((need) => need.library.startsWith('libc.so') && /^GLIBC_\d/.test(need.version))
  const oldest = ofLibc.toSorted((a, b) => compareVersions(numbersOf(a.version), numbersOf(b.version)))[0]
  const changes: string[] = []
  for (const need of ofLibc) {
    if (oldest === undefined || compareVersions(numbersOf(need.version), GLIBC_CEILING) <= 0) continue
    for (let index = 0; index < symbols.size / SYMBOL_SIZE; index++) {
      const versionPosition = versionOfSymbols.position + 2 * index
      if ((view.getUint16(versionPosition, true) & VERSION_INDEX_MASK) !== need.index) continue
      const symbolPosition = symbols.position + SYMBOL_SIZE * index
      const nameOffset = view.getUint32(symbolPosition, true)
      const name = nameAt(nameOffset)
      if (!name.startsWith(C23_PREFIX)) throw refusal(`it needs ${name}@${need.version}`)
      view.setUint32(symbolPosition, nameOffset + C23_PREFIX.length, true)
      view.setUint16(versionPosition, oldest.index, true)
      changes.push(`${name}@${need.version} -> ${name.slice(C23_PREFIX.length)}@${oldest.version}`)
    }
    // The need itself becomes a second one of the oldest version, under an index that no symbol uses any more.
    view.setUint32(need.position, view.getUint32(oldest.position, true), true)
    view.setUint32(need.position + 8, view.getUint32(oldest.position + 8, true), true)
  }
  return { bytes, changes }
}

function parseSections(view: DataView): Section[] {
  const isElf = view.byteLength >= 64 && view.getUint32(0) === 0x7f454c46 && view.getUint16(4) === 0x0201
  if (!isElf) throw refusal('it is no ELF file of 64 bit, little-endian')
  const table = Number(view.getBigUint64(40, true))
  const count = view.getUint16(60, true)
  if (table + count * SECTION_HEADER_SIZE > view.byteLength) throw refusal('its section table lies outside the file')
  return Array.from({ length: count }, (_, index) => {
    const header = table + index * SECTION_HEADER_SIZE
    return {
      type: view.getUint32(header + 4, true),
      position: Number(view.getBigUint64(header + 24, true)),
      size: Number(view.getBigUint64(header + 32, true)),
      link: view.getUint32(header + 40, true),
      count: view.getUint32(header + 44, true),
    }
  })
}

function sectionOf(sections: readonly Section[], type: number): Section {
  const section = sections.find((candidate) => candidate.type === type)
  if (section === undefined) throw refusal(`it has no section of type 0x${type.toString(16)}`)
  return section
}

/** Two levels of linked lists: libraries, and under each the versions asked of it. */
function parseVersionNeeds(view: DataView, section: Section, nameAt: (offset: number) => string): VersionNeed[] {
  const needs: VersionNeed[] = []
  let library = section.position
  for (let i = 0; i < section.count; i++) {
    const libraryName = nameAt(view.getUint32(library + 4, true))
    let position = library + view.getUint32(library + 8, true)
    for (let j = 0; j < view.getUint16(library + 2, true); j++) {
      const version = nameAt(view.getUint32(position + 8, true))
      needs.push({ position, library: libraryName, version, index: view.getUint16(position + 6, true) })
      position += view.getUint32(position + 12, true)
    }
    library += view.getUint32(library + 12, true)
  }
  return needs
}

function textAt(bytes: Uint8Array, start: number): string {
  return String.fromCharCode(...bytes.subarray(start, bytes.indexOf(0, start)))
}

/** `GLIBC_2.38` -> [2, 38]. */
function numbersOf(version: string): number[] {
  return version.slice('GLIBC_'.length).split('.').map(Number)
}

function compareVersions(a: readonly number[], b: readonly number[]): number {
  return (a[0] ?? 0) - (b[0] ?? 0) || (a[1] ?? 0) - (b[1] ?? 0)
}

function refusal(reason: string): EdgeError {
  return new EdgeError(
    'EDGE_FEATURE_MISSING',
    `the addon cannot be made to load on glibc ${GLIBC_CEILING.join('.')}: ${reason}`,
  )
}
