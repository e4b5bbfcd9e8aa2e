/** `iggy-edge demo`: watch readings travel from devices over the edge to a central server, link cuts included. */
import { type Command, EXIT } from './command.ts'

export const demo: Command = {
  path: ['demo'],
  summary: 'Watch readings travel: three devices, an edge, a central server, and a link that is cut for ten seconds.',
  arguments: [
    { name: 'once', isFlag: true, summary: 'End by itself; exit code 0 only if every reading arrived exactly once.' },
    { name: 'data', summary: 'Data folder to use and to keep; a temporary one is removed at the end.' },
  ],
  async run(values, { print, signal }) {
    const { runDemo } = await import('../demo/demo.ts')
    const isWhole = await runDemo({ isOnce: values.has('once'), dataPath: values.text('data'), signal, print })
    return isWhole ? EXIT.ok : EXIT.failed
  },
}
