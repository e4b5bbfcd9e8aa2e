/** `init`: a commented configuration file and a data folder to begin with. */
import { type Command, EXIT } from './command.ts'

export const init: Command = {
  path: ['init'],
  summary: 'Write a commented configuration file and make the data folder.',
  arguments: [
    { name: 'path', isPositional: true, summary: 'File to write; default edge.toml here.' },
    { name: 'data', summary: 'Data folder to make and to name in the file; default edge-data beside the file.' },
    { name: 'force', isFlag: true, summary: 'Replace the file when it is there. Data is never touched.' },
  ],
  run: async (values, context) => {
    const { initialize } = await import('./initialize.ts')
    initialize(values, context)
    return EXIT.ok
  },
}
