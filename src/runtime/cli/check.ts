/** `check` and `dump`: offline, for a store that no service holds; they change nothing. */
import { type Command, EXIT } from './command.ts'
import { CONFIG_ARGUMENTS } from './config-arguments.ts'
import { OUTPUT_FORMS } from './output.ts'

export const check: Command = {
  path: ['check'],
  summary: 'Check configuration and store of a stopped edge, without changing anything.',
  arguments: [
    ...CONFIG_ARGUMENTS,
    { name: 'output', aliases: ['o'], summary: `Form of the result: ${OUTPUT_FORMS.join(', ')}.` },
    { name: 'config-only', isFlag: true, summary: 'Check the configuration alone.' },
  ],
  run: async (values, context) => (await import('./check-store.ts')).checkStore(values, context),
}

export const dump: Command = {
  path: ['dump'],
  summary: 'Save every readable message of a stopped edge as JSON lines, also from a damaged store.',
  arguments: [
    ...CONFIG_ARGUMENTS,
    { name: 'stream', summary: 'Only this stream, by id or name.' },
    { name: 'topic', summary: 'Only this topic, by id or name.' },
    { name: 'partition', summary: 'Only this partition.' },
    {
      name: 'output',
      aliases: ['o', 'output-file'],
      isRequired: true,
      summary: 'File to write, or - for standard output; message send --input-file reads it.',
    },
    { name: 'force', isFlag: true, summary: 'Replace the file when it is there.' },
  ],
  async run(values, context) {
    const { dumpStore } = await import('./dump-store.ts')
    const isWhole = await dumpStore(values, context)
    return isWhole ? EXIT.ok : EXIT.failed
  },
}
