/** The broker: what every way in may ask for, with rights, groups and offsets in force. */
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log/index.ts'
import type { Logger } from '../../logger.ts'
import { xxh32 } from '../../sdk/wire/xxh32.ts'
import type { Broker } from './api.ts'
import { Clients } from './clients.ts'
import type { BrokerContext, ServerIdentity } from './context.ts'
import { createDevices } from './devices.ts'
import { createGroups } from './groups.ts'
import { LiveGroups } from './live-groups.ts'
import { startMaintenance } from './maintenance.ts'
import { MessageDedup } from './message-dedup.ts'
import { MessageSizes } from './message-sizes.ts'
import { createMessages } from './messages.ts'
import { createOffsets } from './offsets.ts'
import { PasswordHasher } from './password.ts'
import { RightsBook } from './rights-book.ts'
import { ensureRootUser, type RootCredentials } from './root-user.ts'
import { Serial } from './serial.ts'
import { createSessions } from './sessions.ts'
import type { BrokerSettings } from './settings.ts'
import { createStreams } from './streams.ts'
import { createSystem } from './system.ts'
import { createTokens } from './tokens.ts'
import { createTopics } from './topics.ts'
import { createUsers } from './users.ts'

export type * from './api.ts'
export type { ServerIdentity } from './context.ts'
export { residentBytes } from './machine-stats.ts'
export { type PermissionsJson, permissionsFromJson, permissionsToJson } from './permissions-json.ts'
export { checkRootCredentials, DEFAULT_ROOT, type RootCredentials, rootCredentialsFrom } from './root-user.ts'
export * from './settings.ts'
export {
  defaultTopicOptions,
  derivedOptions,
  describeTopicOptions,
  explicitOptions,
  parseTopicOptions,
  type TopicDefaults,
} from './topic-options.ts'

export interface BrokerOptions {
  readonly log: Log
  readonly clock: Clock
  /** Whether wall time can be trusted now; else nothing is removed for its age. */
  readonly isClockTrusted: () => boolean
  readonly logger: Logger
  readonly settings: BrokerSettings
  readonly root: RootCredentials
  readonly identity: ServerIdentity
}

export interface RunningBroker extends Broker, AsyncDisposable {
  /** Password made for the root user at this first start: show it once. */
  readonly generatedRootPassword: string | null
  /** Checks heartbeats, promised partitions and tokens now; timers do so every second or two. */
  maintain(): Promise<void>
  /** Ends timers. The log is the caller's. Idempotent. */
  close(): Promise<void>
}

/** Makes the root user when there is none and reads back what deduplication needs. */
export async function createBroker(options: BrokerOptions): Promise<RunningBroker> {
  const { log, clock, logger, settings } = options
  const hasher = new PasswordHasher()
  const parts = { metadata: log.metadata, hasher, clock, logger, isReset: settings.broker.reset_root }
  const generatedRootPassword = await ensureRootUser(parts, options.root)
  const dedup = new MessageDedup(log, clock, settings.messageDeduplication.max_total_entries)
  await dedup.load()
  const sizes = new MessageSizes(log, logger)

  const window = settings.messageDeduplication
  const topicDefaults = {
    durability: settings.defaultDurability,
    segmentSizeBytes: settings.defaultSegmentSizeBytes,
    dedupWindow: window.enabled ? { maxEntries: window.max_entries, expiryUs: BigInt(window.expiry) * 1000n } : null,
  }
  const liveGroups = new LiveGroups(settings.consumerGroup.rebalancing_timeout * 1000)
  const { catalog } = log
  const stopFollowing = catalog.onChanged(() => {
    liveGroups.topicsChanged((topic) => catalog.topic(topic.streamId, topic.id) === topic, clock.monotonicUs())
  })
  const context: BrokerContext = {
    ...options,
    topicDefaults,
    rights: new RightsBook(log.metadata),
    hasher,
    clients: new Clients(clock, (address) => xxh32(new TextEncoder().encode(address))),
    liveGroups,
    dedup,
    sizes,
    serial: new Serial(),
    endSessionsOf: (userId) => sessions.endSessionsOf(userId),
    rightsChanged: (userId) => sessions.rightsChanged(userId),
  }
  const sessions = createSessions(context)
  const maintenance = startMaintenance(context, sessions)
  const close = () => {
    stopFollowing()
    return maintenance.close()
  }
  return {
    topicDefaults,
    messageSizeOf: (partition) => sizes.of(partition),
    generatedRootPassword,
    ...sessions.operations,
    ...createSystem(context),
    ...createUsers(context),
    ...createTokens(context),
    ...createDevices(context),
    ...createStreams(context),
    ...createTopics(context),
    ...createMessages(context),
    ...createOffsets(context),
    ...createGroups(context),
    maintain: () => maintenance.run(),
    close,
    [Symbol.asyncDispose]: close,
  }
}
