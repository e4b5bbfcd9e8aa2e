/** The service itself, until a signal ends it. */
import { once } from 'node:events'
import { resolve } from 'node:path'
import { systemClock } from '../../clock.ts'
import { createLogger } from '../../logger.ts'
import { rootCredentialsFrom } from '../broker/index.ts'
import { startEdge } from '../edge.ts'
import { logDestination } from '../logging/log-destination.ts'
import { RecentLines } from '../logging/recent-lines.ts'
import { collectWhenIdle } from '../memory/idle-memory.ts'
import { returnSpareMemory } from '../memory/spare-memory.ts'
import { createServiceNotifier } from '../sdnotify.ts'
import { PRODUCT_VERSION } from '../version.ts'
import type { CommandContext } from './command.ts'
import { configurationOf } from './configuration.ts'
import type { Values } from './grammar.ts'
import { refuseFresh, removeStore } from './remove-store.ts'
import { unlessAborted } from './unless-aborted.ts'

/** @throws {EdgeError} what `startEdge` throws. */
export async function runEdge(values: Values, context: CommandContext): Promise<void> {
  const notifier = createServiceNotifier()
  notifier.starting()
  const { config, ignoredVariables, unfitValues, file, openSecrets } = configurationOf(values, context)
  const { IGGY_ROOT_USERNAME: username, IGGY_ROOT_PASSWORD: password } = context.environment
  const root = rootCredentialsFrom(
    { username, password },
    values.has('dev') || values.has('with-default-root-credentials'),
  )
  // Before the first line of the log, whose file may lie in there.
  if (values.has('fresh')) {
    await refuseFresh(config, root)
    removeStore(resolve(config.system.path))
  }
  const recentLines = new RecentLines()
  const logger = createLogger(config.logging.level, logDestination(config, recentLines))
  if (ignoredVariables.length > 0) {
    const reasons = unfitValues.length > 0 ? { unfit: unfitValues.join('; ') } : {}
    logger.warn('edge.environment.ignored', { variables: ignoredVariables.join(' '), ...reasons })
  }
  if (openSecrets.length > 0) logger.warn('edge.secrets.readable_by_all', { file, keys: openSecrets.join(' ') })
  const startedMs = performance.now()
  const onRootPassword = (made: string) =>
    context.note(`Generated root user password: ${made}   (user ${root.username}; shown this once)`)
  const recentLog = () => recentLines.text
  const told = { onRootPassword, onProgress: notifier.starting, onStatus: notifier.status }
  const starting = startEdge({ config, clock: systemClock, logger, recentLog, root, ...told })
  await using edge = await unlessAborted(starting, context.signal)
  const stopping = () => {
    logger.info('edge.stopping', { reason: String(context.signal.reason) })
    notifier.stopping()
  }
  if (edge === null) return stopping()
  logger.info('edge.ready', {
    version: PRODUCT_VERSION,
    config: file ?? '',
    data: edge.dataPath,
    ...edge.addresses,
    certificate_sha256: edge.certificateSha256(),
    default_durability: config.log.default_durability,
    start_ms: Math.round(performance.now() - startedMs),
  })
  notifier.ready()
  const watchdog =
    notifier.watchdogIntervalMs === null ? null : setInterval(() => notifier.watchdog(), notifier.watchdogIntervalMs)
  // In this order: what the collection frees is returned by the same look, or the next one.
  const endCollecting = collectWhenIdle()
  const endReturning = returnSpareMemory()
  if (!context.signal.aborted) await once(context.signal, 'abort')
  stopping()
  endCollecting()
  endReturning()
  if (watchdog !== null) clearInterval(watchdog)
}
