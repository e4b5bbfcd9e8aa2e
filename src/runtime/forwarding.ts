/** Ties sync to the log and tells what it does in the words of page, health and metrics. */
import type { Clock } from '../clock.ts'
import { EdgeError, type ErrorCode } from '../errors.ts'
import type { Log, Partition } from '../log/index.ts'
import type { Logger } from '../logger.ts'
import {
  type BudgetStore,
  type CursorStore,
  type LogSource,
  parseRoute,
  readSyncOptions,
  type SourcePartition,
  type Sync,
  type SyncOptions,
  type SyncPartitionState,
  type SyncReason,
  type UpstreamState,
  upstreamSpecOf,
} from '../sync/index.ts'
import type { Config } from './config/schema.ts'
import type { SyncLags, SyncRouteStatus } from './observe/index.ts'
import { storedValue } from './stored-value.ts'

export function syncOptionsOf(config: Config): SyncOptions {
  return { upstreams: config['sync.upstreams'].map(upstreamSpecOf), routes: config['sync.routes'] }
}

/** @returns a line for each problem of upstreams and routes; their values alone decide. */
export function findSyncProblems(config: Config): readonly string[] {
  try {
    readSyncOptions(syncOptionsOf(config))
    return []
  } catch (error) {
    if (!(error instanceof EdgeError)) throw error
    const { problems } = error.details
    return Array.isArray(problems) ? problems.map(String) : [error.message]
  }
}

/** Names of the routes: what the cursors of others wait for, nobody carries any more. */
export function routeNamesOf(config: Config): ReadonlySet<string> {
  return new Set(config['sync.routes'].map((route) => parseRoute(route).name))
}

export function logSourceOf(log: Log): LogSource {
  return {
    storeId: log.storeId,
    topics: () =>
      [...log.catalog.streams.values()].flatMap((stream) =>
        [...stream.topics.values()].map((topic) => ({
          streamName: stream.name,
          topicName: topic.name,
          partitions: topic.partitions.map(sourcePartitionOf),
        })),
      ),
    onTopicsChanged: (callback) => log.catalog.onChanged(callback),
  }
}

function sourcePartitionOf(partition: Partition): SourcePartition {
  return {
    key: partition.key,
    partitionId: partition.partitionId,
    foundEnd: partition.foundEnd,
    get logStartOffset() {
      return partition.logStartOffset
    },
    get durableEnd() {
      return partition.durableEnd
    },
    read: (fromOffset, maxCount, maxBytes) => partition.read({ fromOffset, maxCount, maxBytes, upTo: 'durable' }),
    onAppended: (callback) => partition.onAppended(callback),
  }
}

export function cursorStoreOf(log: Log): CursorStore {
  return {
    cursor: (route, partitionKey) => log.metadata.cursor(route, partitionKey),
    setCursor: (route, partitionKey, cursor) => log.metadata.setCursor(route, partitionKey, cursor),
  }
}

/** One setting for each upstream that has a daily budget. */
export function budgetStoreOf(metadata: Pick<Log['metadata'], 'setting' | 'setSetting'>, logger: Logger): BudgetStore {
  const nameOf = (upstream: string): string => `sync.budget.${upstream}`
  return {
    spent: (upstream) => storedValue(metadata, nameOf(upstream), parseSpent, logger),
    setSpent: (upstream, { usedBytes, elapsedUs, atUs }) =>
      metadata.setSetting(nameOf(upstream), `${usedBytes} ${Math.round(elapsedUs)} ${atUs}`),
  }
}

function parseSpent(text: string) {
  const found = /^(\d+) (\d+) (\d+)$/.exec(text)
  if (found === null) throw new Error(`expected three numbers, found ${JSON.stringify(text)}`)
  const [, usedBytes, elapsedUs, atUs = ''] = found
  return { usedBytes: Number(usedBytes), elapsedUs: Number(elapsedUs), atUs: BigInt(atUs) }
}

/** One row for each route, also while it carries nothing: an upstream that cannot be reached shows before its first message. */
export function routeStatuses(sync: Sync | null, config: Config, clock: Clock): readonly SyncRouteStatus[] {
  if (sync === null) return []
  const nowUs = clock.wallUs()
  const routes = config['sync.routes'].map(parseRoute)
  return sync.state().upstreams.flatMap((upstream) => {
    const own = routes.filter(({ upstreamName }) => upstreamName === upstream.name)
    const budgetBytes = config['sync.upstreams'].find(({ name }) => name === upstream.name)?.daily_budget ?? 0
    return own.map(({ name }) => statusOf(upstream, { route: name, budgetBytes, nowUs }))
  })
}

export function syncLagsOf(sync: Sync | null): SyncLags {
  const keyOf = (...path: readonly [string, string, number]) => JSON.stringify(path)
  const lags = new Map<string, bigint>()
  for (const { partitions } of sync?.state().upstreams ?? []) {
    for (const { streamName, topicName, partitionId, lagCount } of partitions) {
      const key = keyOf(streamName, topicName, partitionId)
      const known = lags.get(key)
      if (known === undefined || lagCount > known) lags.set(key, lagCount)
    }
  }
  return { lagOf: (...path) => lags.get(keyOf(...path)) ?? null }
}

interface Asked {
  readonly route: string
  /** Of the upstream a day; 0: no limit. */
  readonly budgetBytes: number
  readonly nowUs: bigint
}

function statusOf(upstream: UpstreamState, { route, budgetBytes, nowUs }: Asked): SyncRouteStatus {
  const partitions = upstream.partitions.filter((each) => each.route === route)
  const agoMs = partitions.map(({ confirmedAgoMs }) => confirmedAgoMs).filter((each) => each !== null)
  const held = partitions.find(({ state }) => state === 'blocked') ?? partitions.find(({ reason }) => reason !== null)
  const total = (count: (each: SyncPartitionState) => bigint): number =>
    Number(partitions.reduce((sum, each) => sum + count(each), 0n))
  const lagMessages = total(({ lagCount }) => lagCount)
  const pause = lagMessages > 0 ? upstream.pause : null
  const state = pause === null ? stateOf(upstream, held) : 'paused'
  const reason = upstream.reason ?? held?.reason ?? null
  const cause = pause === null ? causeOf(reason) : PAUSES[pause.reason]
  const waitMs = upstream.nextAttemptInMs ?? pause?.forMs ?? held?.nextAttemptInMs ?? null
  return {
    route,
    upstream: upstream.name,
    address: upstream.url,
    state,
    cause,
    action: cause === '' ? '' : `${adviceOf(state, upstream.failureKind, reason)} Data is kept here meanwhile.`,
    lagMessages,
    confirmedMessages: total(({ sentCount }) => sentCount),
    gapMessages: total(({ gapCount }) => gapCount),
    unreadableMessages: total(({ unreadableCount }) => unreadableCount),
    deadLetterMessages: total(({ deadLetterCount }) => deadLetterCount),
    resentMessages: total(({ resentCount }) => resentCount),
    today: budgetBytes > 0 ? { usedBytes: upstream.usedTodayBytes, budgetBytes } : null,
    failureCount: upstream.failureCount,
    nextTryAtUs: waitMs === null ? null : nowUs + BigInt(waitMs) * 1000n,
    lastConfirmedAtUs: agoMs.length === 0 ? null : nowUs - BigInt(Math.min(...agoMs)) * 1000n,
  }
}

const PAUSES = {
  day: 'the daily budget of the link is used up',
  rate: 'the link has a limit of bytes per second',
} as const

/** What an operator can mend, in front of what the protocol calls it. */
const CAUSES: Partial<Readonly<Record<ErrorCode, string>>> = {
  EDGE_CREDENTIALS_INVALID: 'the upstream refuses user or password',
  EDGE_UNAUTHENTICATED: 'the upstream wants a user',
  EDGE_TOKEN_INVALID: 'the upstream refuses the token',
  EDGE_TOKEN_EXPIRED: 'the token has expired at the upstream',
  EDGE_USER_INACTIVE: 'the user is not active at the upstream',
  EDGE_FORBIDDEN: 'the user has not the rights for this at the upstream',
}

function causeOf(reason: SyncReason | null): string {
  if (reason === null) return ''
  const known = CAUSES[reason.code]
  return known === undefined ? reason.text : `${known} (${reason.text})`
}

/** A link that is tried again stays blocked until the try succeeds: only then has the operator mended it. */
function stateOf({ link, failureKind }: UpstreamState, held: SyncPartitionState | undefined): SyncRouteStatus['state'] {
  if (link === 'closed') return 'stopped'
  if (link === 'up') return held?.state === 'blocked' ? 'blocked' : 'connected'
  if (failureKind !== null && failureKind !== 'unreachable') return 'blocked'
  return link === 'connecting' ? 'connecting' : 'waiting'
}

/** What ends a link that is blocked. */
const LINK_ADVICE = {
  refused: 'Correct user, password or token in the `url` of the upstream, or the user there.',
  certificate: 'Correct `tls_ca_file` or `tls_domain` of the upstream, or its certificate.',
  clock: 'Set the clock of this machine, or wait until the time service has set it.',
} as const

function adviceOf(
  state: SyncRouteStatus['state'],
  failureKind: UpstreamState['failureKind'],
  reason: SyncReason | null,
): string {
  if (state === 'paused') return 'Raise the limit of the upstream if it must go sooner.'
  if (state !== 'blocked') return 'Check address, user and network of the upstream.'
  if (failureKind !== null && failureKind !== 'unreachable') return LINK_ADVICE[failureKind]
  return reason?.code === 'EDGE_FORBIDDEN'
    ? 'Give the user of this route the right to write to its topic at the upstream.'
    : 'The upstream refuses each message: see its log, and the limits of its topic.'
}
