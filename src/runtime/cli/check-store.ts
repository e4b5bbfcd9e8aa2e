/** Checks configuration and store and says what is wrong and what the next start does about it. */
import { resolve } from 'node:path'
import { findLogProblems, isEmptyStore, openInspection, type StoreInspection } from '../../log/index.ts'
import { configInvalid } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { findConfigProblems } from '../config-problems.ts'
import { type CommandContext, EXIT } from './command.ts'
import { configurationOf } from './configuration.ts'
import type { Values } from './grammar.ts'
import { bytes, formatRow, formatRows, nested, OUTPUT_FORMS, type OutputForm, type Row } from './output.ts'
import { refuseAborted } from './unless-aborted.ts'

/** @returns the exit code: 0 sound, 1 damaged. @throws {EdgeError} EDGE_CONFIG_INVALID, EDGE_STORE_IN_USE .. */
export async function checkStore(values: Values, context: CommandContext): Promise<number> {
  const form = values.choice('output', 'table', OUTPUT_FORMS)
  const { config, ignoredVariables, unfitValues, file, openSecrets } = configurationOf(values, context)
  const { 'log.encryption': encryption, retention } = config
  const problems = [...findConfigProblems(config), ...(await findLogProblems({ encryption, retention }))]
  if (problems.length > 0) throw configInvalid(problems)
  for (const variable of ignoredVariables) context.note(`${variable} is set and has no effect here`)
  for (const sentence of unfitValues) context.note(sentence)
  if (openSecrets.length > 0)
    context.note(`everybody on this machine can read ${file}, which holds ${openSecrets.join(', ')}: chmod 600 ${file}`)
  if (values.has('config-only')) {
    context.print(form === 'json' ? formatRow({ configuration: 'sound', file }, 'json') : soundText(file))
    return EXIT.ok
  }
  const path = resolve(config.system.path)
  if (isEmptyStore(path)) return sayNoStore({ config, file, path }, form, context)
  using inspection = openInspection({ path, encryption: config['log.encryption'], isBlindAllowed: true })
  const rows = await readTopics(inspection, context.signal)
  print(inspection, { ...rows, file }, form, context)
  return inspection.findings.some(({ level }) => level === 'error') ? EXIT.failed : EXIT.ok
}

/** Which file was read is half of the answer: a forgotten --config is checked as the defaults. */
const soundText = (file: string | null): string => `configuration: sound (${file ?? NO_FILE})`
const NO_FILE = 'no file: defaults and environment'

interface NoStore {
  readonly config: Config
  readonly file: string | null
  readonly path: string
}

/** Before the first start there is nothing to check, unless the configuration says that there must be. */
function sayNoStore({ config, file, path }: NoStore, form: OutputForm, context: CommandContext): number {
  const isMissing = config.system.expect_existing
  const text = isMissing
    ? 'holds no store, and system.expect_existing says it must'
    : 'holds no store yet: the first start makes it'
  if (form === 'json') context.print(formatRow({ configuration: 'sound', file, data: path, store: 'missing' }, 'json'))
  else context.print(`${soundText(file)}\ndata folder ${path} ${text}`)
  return isMissing ? EXIT.failed : EXIT.ok
}

interface StoreRows {
  readonly partitions: Row[]
  readonly consumers: Row[]
}

interface CheckedStore extends StoreRows {
  readonly file: string | null
}

/** Reading everything is the check: each block's sum and each batch. */
async function readTopics(inspection: StoreInspection, signal: AbortSignal): Promise<StoreRows> {
  const [rows, consumers]: [Row[], Row[]] = [[], []]
  for (const topic of inspection.topics) {
    for (const partition of topic.partitions) {
      const walk = inspection.read(partition)
      const { counts } = walk
      for await (const _batch of walk.batches()) {
        // What cannot be read is told to the findings on the way.
        refuseAborted(signal)
      }
      rows.push({
        stream: topic.streamName,
        topic: topic.topicName,
        partition: partition.partitionId,
        messages: counts.messageCount,
        first_offset: counts.firstOffset,
        next_offset: counts.nextOffset,
        segments: counts.segmentCount,
        size: bytes(counts.segmentBytes),
        damaged: counts.damagedBlocks,
      })
      const place = { stream: topic.streamName, topic: topic.topicName, partition: partition.partitionId }
      for (const { kind, consumerId, offset } of inspection.consumerOffsets(partition))
        consumers.push({ ...place, kind, consumer_id: consumerId, offset })
    }
  }
  return { partitions: rows, consumers }
}

function print(inspection: StoreInspection, store: CheckedStore, form: OutputForm, context: CommandContext): void {
  const { partitions, consumers, file } = store
  const { sizes, findings, findingsLeftOut } = inspection
  const damageCount = findings.filter(({ level }) => level === 'error').length
  const overview: Row = {
    configuration: 'sound',
    file: form === 'json' ? file : (file ?? NO_FILE),
    data: inspection.path,
    store: damageCount === 0 ? 'sound' : `${damageCount} problems`,
    store_id: inspection.storeId,
    last_stop: inspection.isCleanStop ? 'clean' : 'not clean: the next start recovers the journal',
    segments: bytes(sizes.segments),
    journal: bytes(sizes.journal),
    metadata: bytes(sizes.metadata),
    quarantine: bytes(sizes.quarantine),
  }
  const rows = findings.map(({ level, path, text }): Row => ({ level, path, finding: text }))
  if (form === 'json') {
    const left = findingsLeftOut === 0 ? {} : { findings_left_out: findingsLeftOut }
    const tables = { partitions: nested(partitions), consumer_offsets: nested(consumers), findings: nested(rows) }
    const whole = { ...overview, ...tables, ...left }
    context.print(formatRow({ ...whole, store: damageCount === 0 ? 'sound' : 'damaged' }, 'json'))
    return
  }
  context.print(formatRow(overview, 'table'))
  for (const table of [partitions, consumers]) if (table.length > 0) context.print(`\n${formatRows(table, form)}`)
  for (const { level, path, text } of findings)
    context.print(`${level === 'error' ? 'ERROR' : 'warning'}  ${path} ${text}`)
  if (findingsLeftOut > 0) context.print(`and ${findingsLeftOut} more`)
  if (damageCount > 0)
    context.print(
      '\nWhat is damaged is passed over; all else reads. iggy-edge dump saves it to a file before you change the disk.',
    )
}
