/** `iggy-edge demo`: watch readings travel from devices over the edge to a central server, link cuts included. */
import { readdirSync, statSync } from 'node:fs'
import { type Command, EXIT } from './command.ts'
import { usageError } from './grammar.ts'

export const demo: Command = {
  path: ['demo'],
  summary: 'Watch readings travel: three devices, an edge, a central server, and a link that is cut for ten seconds.',
  arguments: [
    { name: 'once', isFlag: true, summary: 'End by itself; exit code 0 only if every reading arrived exactly once.' },
    {
      name: 'data',
      summary: 'Data folder to make and to keep, empty or not there yet; a temporary one is removed at the end.',
    },
  ],
  async run(values, { print, signal }) {
    const { runDemo } = await import('../demo/demo.ts')
    const dataPath = values.text('data')
    if (dataPath !== undefined) refuseUsed(dataPath)
    const isWhole = await runDemo({ isOnce: values.has('once'), dataPath, signal, print })
    return isWhole ? EXIT.ok : EXIT.failed
  },
}

/** What an earlier demo left there would be counted as this one's. */
function refuseUsed(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  const isFree = found === undefined ? path !== '' : found.isDirectory() && readdirSync(path).length === 0
  if (!isFree) throw usageError(`data: found "${path}", expected a folder that is empty or not there yet`)
}
