/** All links and routes of one edge: which topic goes where, and which upstream is tried when. */
import { US_MS } from '../clock.ts'
import { EdgeError, messageOf } from '../errors.ts'
import { describeTarget } from '../sdk/index.ts'
import type { Sync } from './api.ts'
import type { ForwarderView } from './core/forwarder-protocol.ts'
import { LinkPace } from './core/link-pace.ts'
import { idPrefix } from './core/message-id.ts'
import type { Route } from './core/route.ts'
import { SYNC_DEFAULTS } from './defaults.ts'
import { openBinaryUpstream } from './io/binary-upstream.ts'
import { openHttpUpstream } from './io/http-upstream.ts'
import { NetworkWatch } from './io/network-watch.ts'
import type { PartitionRunner, RunnerOptions } from './io/partition-runner.ts'
import type { OpenUpstream } from './io/upstream.ts'
import { UpstreamLoop } from './io/upstream-loop.ts'
import type { SyncSettings, UpstreamSettings } from './options.ts'
import type { SourcePartition, SourceTopic, SyncPorts } from './ports.ts'
import type { SyncPartitionState, SyncReason, SyncState, UpstreamState } from './state.ts'

/** A partition that goes upstream, whether it does so already or not. */
interface Wanted {
  readonly name: string
  readonly options: () => RunnerOptions
}

export class SyncRunner implements Sync {
  readonly #settings: SyncSettings
  readonly #ports: SyncPorts
  readonly #loops = new Map<string, UpstreamLoop>()
  readonly #watch: NetworkWatch
  readonly #unsubscribe: () => void
  /** What was warned of in this look at the topics, and in the one before. */
  #warned = new Set<string>()
  #warnedBefore: ReadonlySet<string> = new Set()
  #topics: readonly SourceTopic[] = []

  constructor(settings: SyncSettings, ports: SyncPorts) {
    this.#settings = settings
    this.#ports = ports
    for (const upstream of settings.upstreams) this.#loops.set(upstream.name, this.#loopOf(upstream))
    this.#takeTopics()
    this.#unsubscribe = ports.log.onTopicsChanged(() => this.#takeTopics())
    this.#watch = new NetworkWatch({
      intervalMs: SYNC_DEFAULTS.networkCheckMs,
      clock: ports.clock,
      onChange: () => this.probe(),
      onTick: () => {
        for (const loop of this.#loops.values()) loop.watch()
      },
    })
    for (const loop of this.#loops.values()) loop.start()
  }

  state(): SyncState {
    const nowUs = this.#ports.clock.monotonicUs()
    return { upstreams: [...this.#loops.values()].map((loop) => upstreamState(loop, nowUs)) }
  }

  probe(): void {
    for (const loop of this.#loops.values()) loop.probe()
  }

  async close(): Promise<void> {
    this.#unsubscribe()
    this.#watch.close()
    const error = new EdgeError('EDGE_SHUTTING_DOWN', 'sync was closed')
    await Promise.all([...this.#loops.values()].map((loop) => loop.close(error)))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #loopOf(settings: UpstreamSettings): UpstreamLoop {
    const pace = new LinkPace({
      initialUs: settings.requestTimeoutInitialMs * US_MS,
      minUs: settings.requestTimeoutMinMs * US_MS,
      maxUs: settings.requestTimeoutMaxMs * US_MS,
      usualBytesPerSecond: settings.slowestBytesPerSecond,
    })
    const { clock } = this.#ports
    const open: OpenUpstream =
      settings.target.scheme === 'http'
        ? (...link) => openHttpUpstream({ ...settings, clock, pace }, ...link)
        : (...link) => openBinaryUpstream({ ...settings, clock, pace }, ...link)
    const loop: UpstreamLoop = new UpstreamLoop(settings, this.#ports, open, () => this.#reached(loop))
    return loop
  }

  /** Where one server can be reached again, another may be. */
  #reached(reached: UpstreamLoop): void {
    for (const loop of this.#loops.values()) if (loop !== reached) loop.reachedElsewhere()
  }

  #takeTopics(): void {
    this.#topics = this.#ports.log.topics()
    this.#warnedBefore = this.#warned
    this.#warned = new Set()
    const wanted = new Map<string, Wanted[]>()
    const targets = new Set<string>()
    for (const route of this.#settings.routes) {
      for (const topic of this.#topics) this.#take(route, topic, wanted, targets)
    }
    for (const [upstreamName, loop] of this.#loops) {
      const runners = wanted.get(upstreamName) ?? []
      const names = new Set(runners.map(({ name }) => name))
      loop.keepOnly((name) => names.has(name))
      for (const { name, options } of runners) if (!loop.has(name)) loop.add(name, options())
    }
  }

  #take(route: Route, topic: SourceTopic, wanted: Map<string, Wanted[]>, targets: Set<string>): void {
    const target = this.#targetOf(route, topic)
    const loop = this.#loops.get(route.upstreamName)
    if (target === undefined || loop === undefined) return
    for (const partition of topic.partitions) {
      // Two routes to one place would carry the same ids twice: the first one counts.
      const place = JSON.stringify([route.upstreamName, target.streamName, target.topicName, partition.key])
      if (targets.has(place)) {
        this.#warnOnce('sync.route.shadowed', { route: route.name, stream: topic.streamName, topic: topic.topicName })
        continue
      }
      targets.add(place)
      const runners = wanted.get(route.upstreamName) ?? []
      runners.push({ name: place, options: () => this.#runnerOptions(loop, route, topic, partition, target) })
      wanted.set(route.upstreamName, runners)
    }
  }

  #targetOf(route: Route, topic: SourceTopic): ReturnType<Route['target']> {
    try {
      return route.target(topic)
    } catch (error) {
      const reason = messageOf(error)
      this.#warnOnce('sync.route.name-invalid', { route: route.name, topic: topic.topicName, reason })
      return undefined
    }
  }

  #warnOnce(event: string, fields: Readonly<Record<string, string>>): void {
    const key = `${event} ${JSON.stringify(fields)}`
    const isKnown = this.#warned.has(key) || this.#warnedBefore.has(key)
    this.#warned.add(key)
    if (!isKnown) this.#ports.logger.warn(event, fields)
  }

  #runnerOptions(
    loop: UpstreamLoop,
    route: Route,
    topic: SourceTopic,
    partition: SourcePartition,
    target: { readonly streamName: string; readonly topicName: string },
  ): RunnerOptions {
    const { settings } = loop
    const { streamName, topicName } = topic
    const { log, cursors, deadLetters, clock, logger, random = Math.random } = this.#ports
    return {
      route,
      source: { streamName, topicName },
      target,
      partition,
      partitionCount: () => this.#partitionCount(streamName, topicName, partition.partitionId),
      forwarder: {
        idPrefix: (incarnation) => idPrefix(log.storeId, partition.key, incarnation),
        bounds: { maxCount: settings.maxBatchCount, maxBytes: settings.maxBatchBytes },
        retry: { minDelayUs: settings.retryDelayMinMs * US_MS, maxDelayUs: settings.retryDelayMaxMs * US_MS },
        blockedRetryUs: settings.blockedRetryMs * US_MS,
        settleUs: settings.settleMs * US_MS,
        maxRefusals: settings.maxRefusals,
        maxDeadLettersInRow: settings.maxDeadLettersInRow,
        tailPageCount: settings.tailPageCount,
        tailScanMaxCount: settings.tailScanMaxCount,
        random,
      },
      cursors,
      deadLetters,
      slots: loop.slots,
      budget: loop.budget,
      clock,
      logger,
    }
  }

  #partitionCount(streamName: string, topicName: string, partitionId: number): number {
    const topic = this.#topics.find((one) => one.streamName === streamName && one.topicName === topicName)
    return Math.max(topic?.partitions.length ?? 0, partitionId + 1)
  }
}

function upstreamState(loop: UpstreamLoop, nowUs: number): UpstreamState {
  const { link, settings } = loop
  return {
    name: settings.name,
    url: describeTarget(settings.target),
    link: link.state,
    reason: reasonOf(link.reason),
    failureKind: link.failureKind,
    nextAttemptInMs: link.nextAttemptUs === null ? null : msBetween(nowUs, link.nextAttemptUs),
    failureCount: loop.failureCount,
    usedTodayBytes: loop.budget.usedTodayBytes,
    pause: pauseOf(loop),
    partitions: [...loop.runners].map((runner) => partitionState(runner, nowUs)),
  }
}

function pauseOf({ link, budget }: UpstreamLoop): UpstreamState['pause'] {
  const pause = link.state === 'up' ? budget.pause() : null
  return pause && { reason: pause.reason, forMs: Math.ceil(pause.forUs / US_MS) }
}

function partitionState(runner: PartitionRunner, nowUs: number): SyncPartitionState {
  const { route, source, partition } = runner.options
  const view: ForwarderView = runner.view
  const { lastConfirmedUs, blockedBy: _blockedBy, ...counters } = view.counters
  const { durableEnd, logStartOffset } = partition
  // What retention took does not wait any more, though it is counted as given up only when the link is up again.
  const isPassed = view.nextOffset < logStartOffset
  const lagCount = durableEnd - (isPassed ? logStartOffset : view.nextOffset)
  return {
    route: route.name,
    streamName: source.streamName,
    topicName: source.topicName,
    partitionId: partition.partitionId,
    state: view.state,
    reason: reasonOf(view.reason),
    nextAttemptInMs: view.nextAttemptUs === null ? null : msBetween(nowUs, view.nextAttemptUs),
    confirmedOffset: view.confirmedOffset,
    durableEnd,
    lagCount: lagCount > 0n ? lagCount : 0n,
    confirmedAgoMs: lastConfirmedUs === null ? null : msBetween(lastConfirmedUs, nowUs),
    ...counters,
  }
}

function reasonOf(error: EdgeError | null): SyncReason | null {
  return error === null ? null : { code: error.code, text: error.message }
}

function msBetween(fromUs: number, toUs: number): number {
  return Math.max(0, Math.round((toUs - fromUs) / US_MS))
}
