/** Saves what can be read of a store as JSON lines. The store is not changed; what cannot be read is named. */

import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { EdgeError, messageOf, systemCodeOf } from '../../errors.ts'
import { type InspectedTopic, openInspection, type StoreInspection } from '../../log/index.ts'
import { unpackMessages } from '../../sdk/index.ts'
import { counted } from '../counted.ts'
import type { CommandContext } from './command.ts'
import { configurationOf } from './configuration.ts'
import { usageError, type Values } from './grammar.ts'
import { formatMessageLine } from './message-line.ts'
import { MAX_PARTITION } from './nouns/arguments.ts'
import { written } from './standard-output.ts'
import { refuseAborted } from './unless-aborted.ts'
import { identifierOf } from './words.ts'

/** @returns false when something could not be read. @throws {EdgeError} EDGE_STORE_IN_USE, EDGE_KEY_WRONG, EDGE_IO, usage errors. */
export async function dumpStore(values: Values, context: CommandContext): Promise<boolean> {
  const { config } = configurationOf(values, context)
  const path = resolve(config.system.path)
  using inspection = openInspection({ path, encryption: config['log.encryption'] })
  const only = partitionIn(values)
  const topics = chosenTopics(inspection, values, only)
  const target = openTarget(values)
  let count = 0
  try {
    for (const topic of topics) count += await dumpTopic(inspection, { topic, only }, target, context.signal)
    if (target === process.stdout) {
      const failure = await written(target)
      if (failure !== null) throw failure
    } else {
      target.end()
      await finished(target)
    }
  } catch (cause) {
    if (cause instanceof EdgeError) throw cause
    throw writeError(values.required('output'), cause)
  }
  const errors = inspection.findings.filter(({ level }) => level === 'error')
  for (const { path, text } of errors) context.note(`not saved: ${path} ${text}`)
  context.note(
    `${counted(count, 'message')} saved${errors.length === 0 ? '' : `, ${counted(errors.length, 'place')} could not be read`}`,
  )
  return errors.length === 0
}

/** A reader that is gone is one too: what it has is not the whole store. */
function writeError(output: string, cause: unknown): EdgeError {
  const text =
    systemCodeOf(cause) === 'EEXIST'
      ? `${output} is there already; --force replaces it`
      : `${output === '-' ? 'standard output' : output} cannot be written: ${messageOf(cause)}`
  return new EdgeError('EDGE_IO', text, { cause })
}

function chosenTopics(inspection: StoreInspection, values: Values, only: number | null): readonly InspectedTopic[] {
  const [stream, topic] = [values.text('stream'), values.text('topic')]
  const named = inspection.topics.filter(
    (each) => isNamed(stream, each.streamId, each.streamName) && isNamed(topic, each.topicId, each.topicName),
  )
  const chosen = named.filter(
    ({ partitions }) => only === null || partitions.some(({ partitionId }) => partitionId === only),
  )
  if (chosen.length > 0 || (stream === undefined && topic === undefined && only === null)) return chosen
  if (named.length > 0) {
    const count = Math.max(...named.map(({ partitions }) => partitions.length))
    const there = count === 0 ? 'no partitions' : `0 to ${count - 1}`
    throw usageError(`no partition ${only} in the store; of what was chosen there are: ${there}`)
  }
  const names = inspection.topics.map(({ streamName, topicName }) => `${streamName}/${topicName}`).join(', ')
  throw usageError(`no such topic in the store; there are: ${names === '' ? 'none' : names}`)
}

const partitionIn = (values: Values): number | null =>
  values.has('partition') ? values.integer('partition', 0, { min: 0, max: MAX_PARTITION }) : null

function isNamed(wanted: string | undefined, id: number, name: string): boolean {
  return wanted === undefined || wanted === name || identifierOf(wanted) === id
}

function openTarget(values: Values): Writable {
  const path = values.required('output')
  const target =
    path === '-' ? process.stdout : createWriteStream(path, { flags: values.has('force') ? 'w' : 'wx', flush: true })
  // Looked for after each write; without a listener it would end the process.
  target.on('error', () => {})
  return target
}

/** Written as fast as the target takes it: memory holds one block, not the store. */
async function dumpTopic(
  inspection: StoreInspection,
  { topic, only }: { readonly topic: InspectedTopic; readonly only: number | null },
  target: Writable,
  signal: AbortSignal,
): Promise<number> {
  let count = 0
  for (const partition of topic.partitions) {
    if (only !== null && partition.partitionId !== only) continue
    for await (const batch of inspection.read(partition).batches()) {
      refuseAborted(signal)
      const lines = unpackMessages(batch).map((message) =>
        formatMessageLine({
          ...message,
          stream: topic.streamName,
          topic: topic.topicName,
          partition: partition.partitionId,
        }),
      )
      count += lines.length
      const hasRoom = target.write(lines.map((line) => `${line}\n`).join(''))
      if (target.errored !== null) throw target.errored
      // Rejects with an error that comes meanwhile.
      if (!hasRoom) await once(target, 'drain')
    }
  }
  return count
}
