/** `status`: how a running edge is, over HTTP. */
import type { Command } from './command.ts'
import { SERVER_ARGUMENTS } from './server-arguments.ts'

export const status: Command = {
  path: ['status'],
  summary: 'Show how a running edge is: listeners, promise, disk, topics, upstreams, and what there is to do.',
  arguments: [{ name: 'json', isFlag: true, summary: 'All of it as JSON, for programs.' }],
  common: SERVER_ARGUMENTS,
  run: async (values, context) => (await import('./status-view.ts')).showStatus(values, context),
}
