/** `iggy-edge run`: the service in the foreground. What it needs is loaded when it is chosen. */
import { type Command, EXIT } from './command.ts'
import { CONFIG_ARGUMENTS } from './config-arguments.ts'

export const run: Command = {
  path: ['run'],
  summary: 'Run the edge in the foreground.',
  arguments: [
    ...CONFIG_ARGUMENTS,
    { name: 'with-default-root-credentials', isFlag: true, summary: 'As in Iggy: a new root user is iggy/iggy.' },
    {
      name: 'fresh',
      aliases: ['f'],
      isFlag: true,
      summary: 'As in Iggy: delete what the data folder holds, and start anew.',
    },
  ],
  async run(values, context) {
    const { runEdge } = await import('./run-edge.ts')
    await runEdge(values, context)
    return EXIT.ok
  },
}
