/** What lies at a path where a file is expected: to open a fifo waits without an end, and a device is read without one. */
import { readFileSync, type Stats, statSync } from 'node:fs'
import { EdgeError } from './errors.ts'

/** What was opened before us, as `--config <(…)` hands it in, and what is empty on purpose. */
const GIVEN_ON_PURPOSE = /^(\/dev\/(null|stdin|stdout|stderr|fd\/\d+)|\/proc\/self\/fd\/\d+)$/

/**
 * @returns what is wrong, in words, where neither a file nor nothing lies; behind a link counts what it leads to.
 * @throws the system's error when the path cannot be looked at.
 */
export function notAFile(path: string): string | undefined {
  if (GIVEN_ON_PURPOSE.test(path)) return undefined
  const found = statSync(path, { throwIfNoEntry: false })
  return found === undefined || found.isFile() ? undefined : `expected a file, found ${kindOf(found)}`
}

/** @throws {EdgeError} EDGE_IO where neither a file nor nothing lies; the system's error when the path cannot be looked at. */
export function refuseOtherThanFile(path: string): void {
  const wrong = notAFile(path)
  if (wrong !== undefined) throw new EdgeError('EDGE_IO', `${path}: ${wrong}`, { details: { path } })
}

/** @throws {EdgeError} EDGE_IO where no file lies, and the system's errors. */
export function readFileBytes(path: string): Buffer {
  refuseOtherThanFile(path)
  return readFileSync(path)
}

/** @returns the same of a folder; undefined when there is one. */
export function notAFolder(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory()) return undefined
  return `expected a folder, found ${found === undefined ? 'something else on the way to it' : kindOf(found)}`
}

function kindOf(found: Stats): string {
  if (found.isDirectory()) return 'a folder'
  if (found.isFIFO()) return 'a fifo'
  if (found.isSocket()) return 'a socket'
  return found.isFile() ? 'a file' : 'a device'
}
