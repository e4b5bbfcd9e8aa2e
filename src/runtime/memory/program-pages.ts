/**
 * Unmaps the pages of the program's own files once the edge is idle. A start maps some fifty megabytes of the executable and
 * its addons, of which the work afterwards needs less than half. They stay in the system's page cache, and what is needed
 * again is mapped again from there, sixteen pages at a time. Where Node has no `node:ffi`, nothing happens.
 *
 * Only pages that are as they are in the file: what the loader changed in memory would be lost.
 */
import { readFileSync } from 'node:fs'
import { cFunctions } from '../../c-library.ts'

/** As `madvise(2)` takes it, on all architectures of Linux. */
const MADV_DONTNEED = 4

/** Bytes of memory, from an address on. */
export interface PageRange {
  readonly from: bigint
  readonly size: bigint
}

interface Mapping extends PageRange {
  readonly mode: string
  readonly path: string
  isChanged: boolean
}

/**
 * @param smaps text of `/proc/self/smaps`, see proc(5).
 * @returns the mappings of files with code in them that nobody may write, and nobody has written.
 */
export function unchangedProgramPages(smaps: string): readonly PageRange[] {
  const mappings: Mapping[] = []
  for (const line of smaps.split('\n')) {
    const head = /^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \d+\s*(.*)$/.exec(line)
    const last = mappings.at(-1)
    if (head !== null) {
      const [from, end] = [BigInt(`0x${head[1]}`), BigInt(`0x${head[2]}`)]
      // Until its own line says that it is not.
      mappings.push({ from, size: end - from, mode: head[3] ?? '', path: head[4] ?? '', isChanged: true })
    } else if (last !== undefined && /^Anonymous:\s+0 kB$/.test(line)) {
      last.isChanged = false
    }
  }
  const programs = new Set(mappings.filter(({ mode }) => mode === 'r-xp').map(({ path }) => path))
  return mappings
    .filter(({ mode, path, isChanged }) => {
      return (mode === 'r-xp' || mode === 'r--p') && path.startsWith('/') && programs.has(path) && !isChanged
    })
    .map(({ from, size }) => ({ from, size }))
}

/**
 * Looks up what can be unmapped; that leaves garbage behind, so it comes before a collection.
 *
 * @returns what unmaps it. That comes after the collection, whose code an idle edge does not need either.
 */
export function programPagesUnmapper(): () => void {
  try {
    const { madvise } = cFunctions({ madvise: { arguments: ['u64', 'u64', 'i32'], return: 'i32' } })
    const ranges = unchangedProgramPages(readFileSync('/proc/self/smaps', 'latin1'))
    return () => {
      for (const { from, size } of ranges) madvise(from, size, MADV_DONTNEED)
    }
  } catch {
    // Not this kind of system: the pages stay mapped.
    return () => {}
  }
}
