/** `device`: names whose sequence numbers are remembered, and forgetting one. */
import type { Command } from '../command.ts'
import { httpCommand } from '../http-command.ts'
import { time } from '../output.ts'
import { commandWords, VERBS } from '../words.ts'

const ROUTE = '/edge/devices'

/** As the route answers it. */
interface Device {
  readonly name: string
  readonly last_seen_at: number | bigint | null
}

export const DEVICE_COMMANDS: readonly Command[] = [
  httpCommand({
    ...commandWords(['device'], VERBS.list),
    summary: 'List the devices whose sequence numbers are remembered, the one silent the longest first.',
    arguments: [],
    async run(http, _values, output) {
      const found = (await http.succeed({ method: 'GET', path: ROUTE })) as readonly Device[]
      output.rows(
        found.map(({ name, last_seen_at: at }) => ({ name, last_seen_at: time(at === null ? null : BigInt(at)) })),
      )
    },
  }),
  httpCommand({
    ...commandWords(['device'], ['forget']),
    summary:
      'Forget a device that comes back no more, to make room for others (log.max_publishers). Should it come back, what it has no acknowledgement for may be stored twice.',
    arguments: [{ name: 'name', isPositional: true, isRequired: true, summary: 'Name of the device.' }],
    async run(http, values, output) {
      const name = values.required('name')
      await http.succeed({ method: 'DELETE', path: `${ROUTE}/${encodeURIComponent(name)}` })
      output.done(`device "${name}" forgotten`, { name })
    },
  }),
]
