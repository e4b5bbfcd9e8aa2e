/** Binds the device protocol to the broker and the log: credentials, rights, partitions, cursors. */
import type { Clock } from '../../clock.ts'
import { EdgeError } from '../../errors.ts'
import type { Log, Partition, Topic } from '../../log/index.ts'
import type { StoredBatch } from '../../sdk/wire/batch.ts'
import type { Auth, PartitionChoice } from '../../sdk/wire/edge/index.ts'
import { headerScalarOf } from '../../sdk/wire/header-values.ts'
import { decodeRecords, type PolledMessage } from '../../sdk/wire/messages.ts'
import { decodeUserHeaders } from '../../sdk/wire/user-headers.ts'
import { partitionOfKey } from '../../sdk/wire/xxh32.ts'
import type { Broker, Caller } from '../broker/index.ts'
import { type DevicePolicy, isDeviceAllowed, isTopicAllowed, parseDevicePolicy } from './device-policy.ts'
import type {
  DeviceBroker,
  DeviceGrant,
  DeviceRead,
  DeviceSource,
  DeviceTarget,
  DownMessage,
  EdgeTime,
} from './ports.ts'

export interface EdgeDeviceBrokerOptions {
  readonly broker: Broker
  readonly log: Log
  readonly clock: Clock
  readonly isClockTrusted: () => boolean
}

/** A revoked token ends its sessions within this time (the protocol promises 5 s). */
const REVOCATION_CHECK_MS = 2000
/** Header that names the device a message is meant for; others are for all. */
const KEY_HEADER = 'key'
/** Largest payload of a device: its frame limit is far below. */
const MAX_PAYLOAD_BYTES = 65_535

export interface EdgeDeviceBroker extends DeviceBroker {
  close(): void
}

export function createEdgeDeviceBroker(options: EdgeDeviceBrokerOptions): EdgeDeviceBroker {
  const { broker, log, clock } = options
  /** Those of living sessions. */
  const grants = new Set<Grant>()
  const timer = setInterval(() => {
    for (const grant of grants) if (!grant.isStillGood()) grant.revoke()
  }, REVOCATION_CHECK_MS)
  timer.unref()
  return {
    async authenticate(deviceName, auth) {
      const token = tokenOf(auth)
      const { userId, policy } = credentialOf(broker, token)
      if (policy !== null && !isDeviceAllowed(policy, deviceName)) throw refused()
      return new Grant(options, {
        deviceName,
        policy,
        userId,
        check: () => credentialOf(broker, token),
        inUse: grants,
      })
    },
    lanes: (device, epoch) => log.producers.lanes(device, epoch),
    record: (tag, receipt) => log.producers.record(tag, receipt),
    time(): EdgeTime {
      // Half a second: what a clock under NTP keeps to on a gateway, and what the protocol's rounding adds.
      return { wallUs: clock.wallUs(), isTrusted: options.isClockTrusted(), accuracyMs: 500 }
    },
    close: () => clearInterval(timer),
  }
}

const refused = (): EdgeError => new EdgeError('EDGE_UNAUTHENTICATED', 'device: expected a token for this name')

function tokenOf(auth: Auth): string {
  // Certificates of devices would need a driver that shows them; none does.
  if (!(auth instanceof Uint8Array)) throw refused()
  return new TextDecoder().decode(auth)
}

/** A device token, or a personal access token: that one acts with all rights of its user. */
function credentialOf(broker: Broker, token: string): { userId: number; policy: DevicePolicy | null } {
  try {
    const row = broker.authenticateDevice(token)
    return { userId: row.userId, policy: parseDevicePolicy(JSON.parse(row.deviceJson ?? '{}')) }
  } catch (error) {
    if (!(error instanceof EdgeError) || error.code !== 'EDGE_TOKEN_INVALID') throw error
    return { userId: broker.authenticateToken(token), policy: null }
  }
}

interface GrantParts {
  readonly deviceName: string
  readonly policy: DevicePolicy | null
  readonly userId: number
  /** Throws once the credential is no longer good. */
  readonly check: () => void
  /** Where it stands while a session has it: one that is refused, or gone before it begins, never does. */
  readonly inUse: Set<Grant>
}

class Grant implements DeviceGrant {
  readonly mayReadAllKeys: boolean
  #device: number
  #release: () => void = () => {}
  readonly #options: EdgeDeviceBrokerOptions
  readonly #parts: GrantParts
  readonly #caller: Caller
  #onRevoked: (() => void) | null = null

  constructor(options: EdgeDeviceBrokerOptions, parts: GrantParts) {
    this.#options = options
    this.#parts = parts
    this.#device = options.log.producers.numberOf(parts.deviceName)
    this.mayReadAllKeys = parts.policy?.anyKey ?? true
    const userSinceUs = options.log.metadata.users.get(parts.userId)?.createdAtUs
    this.#caller = { dialect: 'edge', userId: parts.userId, userSinceUs, client: null }
  }

  get device(): number {
    return this.#device
  }

  get onRevoked(): (() => void) | null {
    return this.#onRevoked
  }

  set onRevoked(callback: (() => void) | null) {
    this.#onRevoked = callback
    if (callback === null) {
      this.#parts.inUse.delete(this)
      this.#release()
      return
    }
    const { deviceName, inUse } = this.#parts
    inUse.add(this)
    this.#release = this.#options.broker.holdDevice(deviceName)
    // It may have been forgotten while the session before this one ended.
    this.#device = this.#options.log.producers.numberOf(deviceName)
  }

  isStillGood(): boolean {
    try {
      this.#parts.check()
      return true
    } catch {
      return false
    }
  }

  revoke(): void {
    this.#parts.inUse.delete(this)
    this.#onRevoked?.()
  }

  publishTo(topicName: string, choice: PartitionChoice | undefined): DeviceTarget {
    const { policy, deviceName } = this.#parts
    this.#allow('publish', topicName, policy?.publish)
    const topic = this.#topicOf(topicName)
    if (choice !== undefined && policy !== null && !policy.anyKey) {
      throw new EdgeError(
        'EDGE_FORBIDDEN',
        `device ${deviceName}: its token allows no partition or key of its own choice`,
      )
    }
    const { partitionId } = this.#partitionOf(topic, choice)
    const { broker } = this.#options
    const caller = this.#caller
    const partitioning = { kind: 'partition', partitionId } as const
    return {
      partitionId,
      promise: topic.options.durability,
      maxPayloadBytes: MAX_PAYLOAD_BYTES,
      append: (batch, receipt, tag) => {
        const { streamId, id } = this.#stillNamed(topicName, topic)
        const sent = broker.send(caller, streamId, id, partitioning, batch, receipt, tag)
        return { baseOffset: sent.baseOffset, isDropped: sent.isDropped }
      },
    }
  }

  readFrom(topicName: string, partitionId: number | undefined): DeviceSource {
    this.#allow('subscribe', topicName, this.#parts.policy?.subscribe)
    const topic = this.#topicOf(topicName)
    const partition = this.#partitionOf(topic, partitionId)
    // Rights of the token's user are checked here once; the session ends when the token does.
    this.#options.broker.offset(
      this.#caller,
      { kind: 'consumer', id: this.device },
      topic.streamId,
      topic.id,
      partition.partitionId,
    )
    const isStillNamed = () => {
      const named = this.#findTopic(topicName)?.partitions[partition.partitionId]
      return named?.key === partition.key
    }
    return sourceOf(this.#options.log, partition, { device: this.device, isStillNamed })
  }

  #allow(what: string, topicName: string, patterns: readonly string[] | undefined): void {
    if (patterns === undefined || isTopicAllowed(patterns, this.#parts.deviceName, topicName)) return
    throw new EdgeError('EDGE_FORBIDDEN', `${what} ${topicName}`)
  }

  /**
   * The topic that has the name now. Its numbers do not tell: those of a deleted topic are given to another one, which the
   * token may not name.
   */
  #stillNamed(topicName: string, before: Topic): Topic {
    const topic = this.#topicOf(topicName)
    if (topic.options.durability === 'durable' || before.options.durability === 'buffered') return topic
    throw new EdgeError('EDGE_TOPIC_NOT_FOUND', `topic ${topicName} was made anew and promises less: declare it again`)
  }

  #findTopic(topicName: string): Topic | undefined {
    const { catalog } = this.#options.log
    const slash = topicName.indexOf('/')
    const stream = slash < 0 ? undefined : catalog.stream(topicName.slice(0, slash))
    return stream && catalog.topic(stream.id, topicName.slice(slash + 1))
  }

  #topicOf(topicName: string): Topic {
    const topic = this.#findTopic(topicName)
    if (topic === undefined) throw new EdgeError('EDGE_TOPIC_NOT_FOUND', `topic ${topicName} is not there`)
    return topic
  }

  /** By the hash of the device's name, the same as for a key over Iggy's protocol, unless it may and does choose. */
  #partitionOf(topic: Topic, choice: PartitionChoice | undefined): Partition {
    const key = choice instanceof Uint8Array ? choice : new TextEncoder().encode(this.#parts.deviceName)
    const partitionId = typeof choice === 'number' ? choice : partitionOfKey(key, topic.partitions.length)
    const partition = topic.partitions[partitionId]
    if (partition !== undefined) return partition
    throw new EdgeError(
      'EDGE_PARTITION_NOT_FOUND',
      `partition ${partitionId} of topic "${topic.name}": expected 0..${topic.partitions.length - 1}`,
    )
  }
}

interface Reader {
  readonly device: number
  readonly isStillNamed: () => boolean
}

function sourceOf(log: Log, partition: Partition, { device, isStillNamed }: Reader): DeviceSource {
  return {
    incarnation: Number(BigInt.asUintN(32, partition.idSeed)),
    get startOffset() {
      return partition.logStartOffset
    },
    get endOffset() {
      return partition.visibleEnd
    },
    storedOffset: () => log.metadata.offset(partition.key, 'device', device),
    storeOffset: (offset) => log.metadata.setOffset(partition.key, 'device', device, offset),
    read(fromOffset, maxCount, maxBytes) {
      const result = partition.read({ fromOffset, maxCount, maxBytes })
      return result instanceof Promise ? result.then(toDeviceRead) : toDeviceRead(result)
    },
    onAppended: (callback) => partition.onAppended(callback),
    onGone: (callback) =>
      log.catalog.onChanged(() => {
        if (!isStillNamed()) callback()
      }),
  }
}

function toDeviceRead(result: {
  batches: readonly StoredBatch[]
  nextOffset: bigint
  hole?: { from: bigint; end: bigint }
}): DeviceRead {
  const messages = result.batches.flatMap((batch) => decodeRecords(batch).map(toDownMessage))
  return { messages, nextOffset: result.nextOffset, ...(result.hole === undefined ? {} : { hole: result.hole }) }
}

function toDownMessage(message: PolledMessage): DownMessage {
  return {
    offset: message.offset,
    appendTimeUs: message.appendTimeUs,
    key: keyOf(message.userHeadersView),
    // Owned: it waits for the device's window.
    body: new Uint8Array(message.payloadView),
  }
}

function keyOf(headersView: Uint8Array): string | undefined {
  if (headersView.length === 0) return undefined
  try {
    const header = decodeUserHeaders(headersView).find(({ key }) => headerScalarOf(key) === KEY_HEADER)
    return header === undefined ? undefined : String(headerScalarOf(header.value))
  } catch {
    return undefined // headers that no client can read address nobody
  }
}
