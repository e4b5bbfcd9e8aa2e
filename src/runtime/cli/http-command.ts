/** A command that asks an edge over HTTP: Iggy's protocol knows no devices. */
import { type Command, EXIT } from './command.ts'
import type { EdgeHttp } from './edge-http.ts'
import type { Values } from './grammar.ts'
import { SERVER_ARGUMENTS } from './server-arguments.ts'
import { Output } from './server-command.ts'

interface HttpCommand extends Omit<Command, 'run' | 'common'> {
  run(http: EdgeHttp, values: Values, output: Output): Promise<void>
}

export function httpCommand({ run, ...spec }: HttpCommand): Command {
  return {
    ...spec,
    common: SERVER_ARGUMENTS,
    async run(values, context) {
      const { connectHttp } = await import('./server-client.ts')
      await run(await connectHttp(values, context), values, new Output(values, context))
      return EXIT.ok
    },
  }
}
