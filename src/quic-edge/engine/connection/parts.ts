/** The parts of a connection, as those that work on packets see them. Types alone. */
import type { Role } from './api.ts'
import type { Closing } from './closing.ts'
import type { Handshake } from './handshake.ts'
import type { IdleTimer } from './idle-timer.ts'
import type { KeyPhases } from './key-phases.ts'
import type { LocalIds } from './local-ids.ts'
import type { LossRecovery, PacketSpaces } from './loss-recovery.ts'
import type { Paths } from './paths.ts'
import type { PeerIds } from './peer-ids.ts'
import type { StreamTable } from './stream-table.ts'

/** What is only counted. */
export interface Counters {
  receivedPackets: number
  sentPackets: number
  receivedBytes: number
  sentBytes: number
  rejectedPackets: number
  duplicatePackets: number
}

export interface ConnectionParts {
  readonly role: Role
  readonly spaces: PacketSpaces
  readonly handshake: Handshake
  readonly recovery: LossRecovery
  readonly streams: StreamTable
  readonly localIds: LocalIds
  readonly peerIds: PeerIds
  readonly paths: Paths
  readonly keyPhases: KeyPhases
  readonly closing: Closing
  readonly idle: IdleTimer
  readonly counters: Counters
}
