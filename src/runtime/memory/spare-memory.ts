/**
 * Gives memory that was freed back to the system. V8's compilers and libraries take working memory from the C library,
 * which keeps what they free: eleven megabytes after the first two thousand sends. `malloc_trim(3)` returns it in about a
 * millisecond; where the C library has none, or Node no `node:ffi`, nothing happens.
 */
import { cFunctions } from '../../c-library.ts'

const LOOK_EVERY_MS = 5000
/** Pages of 4 KiB that came since the last time, from which on it is worth a look. */
const LEAST_NEW_PAGES = 256

export interface SpareMemoryPorts {
  /** Pages that the process was given so far. */
  pageCount(): number
  /** Returns free memory to the system. */
  trim(): void
  every(milliseconds: number, task: () => void): () => void
}

/** @returns ends it. */
export function returnSpareMemory(ports: SpareMemoryPorts | undefined = systemPorts()): () => void {
  if (ports === undefined) return () => {}
  let seenCount = ports.pageCount()
  return ports.every(LOOK_EVERY_MS, () => {
    if (ports.pageCount() - seenCount < LEAST_NEW_PAGES) return
    ports.trim()
    seenCount = ports.pageCount()
  })
}

function systemPorts(): SpareMemoryPorts | undefined {
  try {
    const { malloc_trim } = cFunctions({ malloc_trim: { arguments: ['u64'], return: 'i32' } })
    return {
      pageCount: () => process.resourceUsage().minorPageFault,
      trim: () => void malloc_trim(0n),
      every(milliseconds, task) {
        const timer = setInterval(task, milliseconds)
        timer.unref()
        return () => clearInterval(timer)
      },
    }
  } catch {
    return undefined
  }
}
