/**
 * An edge to measure, as the configuration makes one, with a store of its own beside the configured data folder: on the same
 * disk. It listens on loopback only, forwards nothing, and leaves nothing behind.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, realpathSync, rmSync, statfsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { systemClock } from '../../clock.ts'
import { EdgeError, systemCodeOf } from '../../errors.ts'
import { planDiskBudget } from '../../log/index.ts'
import { createLogger } from '../../logger.ts'
import type { Config } from '../config/schema.ts'
import { type Edge, startEdge } from '../edge.ts'
import { ROOM_MIN_BYTES } from './plan.ts'
import { tooLittleRoom } from './server-bench.ts'

export interface OwnEdge extends AsyncDisposable {
  readonly folder: string
  readonly addresses: Edge['addresses']
  readonly root: { readonly username: string; readonly password: string }
}

const LOOPBACK = '127.0.0.1:0'
const FOLDER_PREFIX = 'iggy-edge-bench-'
/** Beside the load: who asks for figures, and who is just leaving. */
const MORE_CONNECTIONS = 16

/** @throws {EdgeError} EDGE_DISK_FULL with too little room, EDGE_IO where no folder can be made, what `startEdge` throws. */
export async function startOwnEdge(config: Config, connections: number): Promise<OwnEdge> {
  const place = placeBeside(resolve(config.system.path))
  refuseFullDisk(place, config)
  await using opened = new AsyncDisposableStack()
  const folder = opened.adopt(makeFolder(place), removeFolder)
  // Also when a second signal, or an error of our own, ends the process at once.
  const removeAtExit = () => removeFolder(folder)
  process.once('exit', removeAtExit)
  opened.defer(() => void process.off('exit', removeAtExit))
  const root = { username: 'bench', password: randomBytes(16).toString('hex') }
  const own = ownConfig(config, folder, connections)
  const { addresses } = opened.use(
    await startEdge({ config: own, clock: systemClock, logger: createLogger(own.logging.level), root }),
  )
  const closing = opened.move()
  return { folder, addresses, root, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}

/**
 * Where the folder may be made, best first: in the folder that holds the data folder, where both are on one disk; else in
 * the data folder, which takes no notice of a folder that it did not make. One not made yet will be on the disk of the
 * nearest one above it.
 */
export function placeBeside(dataPath: string): readonly string[] {
  if (!existsSync(dataPath)) {
    let above = dirname(dataPath)
    while (!existsSync(above)) above = dirname(above)
    return [realpathSync(above)]
  }
  const folder = realpathSync(dataPath)
  const parent = dirname(folder)
  return statSync(parent).dev === statSync(folder).dev ? [parent, folder] : [folder]
}

function refuseFullDisk(places: readonly string[], config: Config): void {
  const [place = ''] = places
  const { bavail, blocks, bsize } = statfsSync(place)
  const { disk_budget: budget, free_space_floor: freeFloor } = config.retention
  const { freeFloorBytes } = planDiskBudget({ budget, freeFloor }, blocks * bsize)
  const { journal_file_size: fileSize, journal_files: fileCount } = config.log
  // Below the floor an edge that runs on this disk would give up its oldest messages.
  const roomBytes = Math.max(0, bavail * bsize - freeFloorBytes - fileSize * fileCount)
  if (roomBytes < ROOM_MIN_BYTES) throw tooLittleRoom(`the disk of ${place}`, roomBytes)
}

function makeFolder(places: readonly string[]): string {
  let failure: unknown
  for (const place of places) {
    try {
      return mkdtempSync(join(place, FOLDER_PREFIX))
    } catch (error) {
      failure = error
    }
  }
  const code = systemCodeOf(failure)
  const text = `bench: no folder can be made in ${places.join(' or ')}: ${code}`
  throw new EdgeError('EDGE_IO', text, { cause: failure, details: { code } })
}

/** As configured in all that costs time and memory; what would reach others, or keep us from reaching it, is off. */
function ownConfig(config: Config, folder: string, connections: number): Config {
  const { tcp, websocket, webtransport, http } = config
  return {
    ...config,
    system: { ...config.system, path: folder, expect_existing: false, reuse_port: false },
    logging: { ...config.logging, level: 'error', file: '' },
    tcp: {
      ...tcp,
      enabled: true,
      address: LOOPBACK,
      max_connections: Math.max(tcp.max_connections, connections + MORE_CONNECTIONS),
      tls_enabled: false,
      tls_required: false,
    },
    websocket: { ...websocket, address: LOOPBACK, tls_enabled: false },
    quic: { ...config.quic, enabled: false },
    webtransport: { ...webtransport, address: LOOPBACK, tls_cert_file: '', tls_key_file: '' },
    http: { ...http, enabled: true, address: LOOPBACK, basic_authentication: true },
    'http.tls': { ...config['http.tls'], enabled: false },
    'http.jwt.trusted_issuers': [],
    'sync.upstreams': [],
    'sync.routes': [],
  }
}
