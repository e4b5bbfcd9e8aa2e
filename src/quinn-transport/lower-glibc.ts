/**
 * Lets the published quinn addon load on glibc below 2.38 (Debian 12, Ubuntu 22.04, RHEL 9). Pure: bytes in, bytes out.
 *
 * The binary needs 2.38 for nothing but two aliases that newer headers emit, `__isoc23_strtol` and `__isoc23_sscanf`; the
 * only difference to `strtol` and `sscanf` is that they read `0b` literals. We let both names start after their prefix
 * in the string table, bind them to libc's base version, and make the 2.38 requirement a copy of the base requirement.
 * No byte moves, nothing is relinked. If any other symbol needs more than the ceiling, the file is refused.
 *
 * This changes a third-party binary: inputs and outputs are pinned by SHA-256 (`pinned-addons.ts`), and NOTICE says so.
 */
import { EdgeError } from '../errors.ts'

/** glibc of the oldest systems we support. */
const CEILING = '2.34'
const ALIAS_PREFIX = '__isoc23_'

const ELF64_LITTLE_ENDIAN = [0x7f, 0x45, 0x4c, 0x46, 2, 1]
const SECTION_DYNSYM = 11
const SECTION_VERNEED = 0x6ffffffe
const SECTION_VERSYM = 0x6fffffff
/** Bytes of one entry of the dynamic symbol table; its first four are the name's place in the string table. */
const SYMBOL_SIZE_BYTES = 24

interface Section {
  readonly type: number
  readonly offset: number
  readonly size: number
  readonly link: number
  readonly info: number
}

/** One `library needs version` record, and where its 16 bytes lie. */
interface VersionNeed {
  readonly position: number
  readonly library: string
  readonly version: string
  readonly index: number
}

/** @returns a copy of the shared object that needs glibc 2.34 at most. @throws EDGE_FEATURE_MISSING if that cannot be done. */
export function lowerGlibc(objectBytes: Uint8Array): Uint8Array {
  const lowered = new Uint8Array(objectBytes)
  const image = new ElfImage(lowered)
  const needs = image.libcNeeds()
  const base = needs[0]
  if (base === undefined) throw cannotLower('it needs no libc')
  for (const need of needs.filter((one) => isAbove(one.version, CEILING))) {
    image.rebind(need, base)
    image.copyNeed(base, need)
  }
  return lowered
}

class ElfImage {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  readonly #symbols: Section
  readonly #versions: Section
  readonly #needs: Section
  readonly #strings: Section

  constructor(bytes: Uint8Array) {
    if (ELF64_LITTLE_ENDIAN.some((byte, at) => bytes[at] !== byte)) throw cannotLower('it is not a 64-bit ELF file')
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const sections = this.#sections()
    const find = (type: number): Section => {
      const section = sections.find((one) => one.type === type)
      if (section === undefined) throw cannotLower(`it has no section of type ${type}`)
      return section
    }
    this.#symbols = find(SECTION_DYNSYM)
    this.#versions = find(SECTION_VERSYM)
    this.#needs = find(SECTION_VERNEED)
    const strings = sections[this.#symbols.link]
    if (strings === undefined) throw cannotLower('its symbols have no string table')
    this.#strings = strings
  }

  /** Version needs of libc, lowest first. */
  libcNeeds(): VersionNeed[] {
    return this.#versionNeeds()
      .filter((need) => need.library.startsWith('libc.so') && /^GLIBC_\d/.test(need.version))
      .sort((one, other) => (isAbove(one.version, other.version) ? 1 : -1))
  }

  /** Gives every symbol of version `from` its plain name and the version `to`. */
  rebind(from: VersionNeed, to: VersionNeed): void {
    const symbolCount = this.#symbols.size / SYMBOL_SIZE_BYTES
    for (let at = 0; at < symbolCount; at++) {
      const versionPosition = this.#versions.offset + 2 * at
      if ((this.#view.getUint16(versionPosition, true) & 0x7fff) !== from.index) continue
      const namePosition = this.#symbols.offset + SYMBOL_SIZE_BYTES * at
      const nameStart = this.#view.getUint32(namePosition, true)
      const name = this.#text(nameStart)
      if (!name.startsWith(ALIAS_PREFIX)) throw cannotLower(`${name} needs ${from.version}`)
      this.#view.setUint32(namePosition, nameStart + ALIAS_PREFIX.length, true)
      this.#view.setUint16(versionPosition, to.index, true)
    }
  }

  /** The loader then checks for `from` twice and for `to` no more: hash in the first 4 bytes, name at 8. */
  copyNeed(from: VersionNeed, to: VersionNeed): void {
    this.#view.setUint32(to.position, this.#view.getUint32(from.position, true), true)
    this.#view.setUint32(to.position + 8, this.#view.getUint32(from.position + 8, true), true)
  }

  #sections(): Section[] {
    const tableStart = this.#u64(40)
    const entrySize = this.#view.getUint16(58, true)
    const count = this.#view.getUint16(60, true)
    return Array.from({ length: count }, (_, index) => {
      const at = tableStart + index * entrySize
      return {
        type: this.#view.getUint32(at + 4, true),
        offset: this.#u64(at + 24),
        size: this.#u64(at + 32),
        link: this.#view.getUint32(at + 40, true),
        info: this.#view.getUint32(at + 44, true),
      }
    })
  }

  /** A chain of libraries, each with a chain of versions; every link is relative to its own start. */
  #versionNeeds(): VersionNeed[] {
    const needs: VersionNeed[] = []
    let library = this.#needs.offset
    for (let left = this.#needs.info; left > 0; left--) {
      let position = library + this.#view.getUint32(library + 8, true)
      for (let versions = this.#view.getUint16(library + 2, true); versions > 0; versions--) {
        needs.push({
          position,
          library: this.#text(this.#view.getUint32(library + 4, true)),
          version: this.#text(this.#view.getUint32(position + 8, true)),
          index: this.#view.getUint16(position + 6, true),
        })
        position += this.#view.getUint32(position + 12, true)
      }
      library += this.#view.getUint32(library + 12, true)
    }
    return needs
  }

  #text(start: number): string {
    const from = this.#strings.offset + start
    return new TextDecoder('latin1').decode(this.#bytes.subarray(from, this.#bytes.indexOf(0, from)))
  }

  #u64(position: number): number {
    return Number(this.#view.getBigUint64(position, true))
  }
}

/** Compares `GLIBC_2.34` or `2.34` by number: 2.4 is below 2.34. */
function isAbove(version: string, other: string): boolean {
  const numbers = (text: string) => text.replace('GLIBC_', '').split('.').map(Number)
  const [mine, theirs] = [numbers(version), numbers(other)]
  for (let at = 0; at < Math.max(mine.length, theirs.length); at++) {
    const difference = (mine[at] ?? 0) - (theirs[at] ?? 0)
    if (difference !== 0) return difference > 0
  }
  return false
}

function cannotLower(why: string): EdgeError {
  return new EdgeError('EDGE_FEATURE_MISSING', `the QUIC addon cannot be fitted to this system's C library: ${why}`)
}
