/** The log as one object: the engine (journal, segments, recovery) and the catalog (names, descriptors, SQLite), wired. */
import { EdgeError } from '../errors.ts'
import type { Log } from './api.ts'
import type { OpenLogOptions } from './index.ts'

export async function openLogStore(options: OpenLogOptions): Promise<Log> {
  throw new EdgeError('EDGE_INTERNAL', `log ${options.path}: engine not wired yet`)
}
