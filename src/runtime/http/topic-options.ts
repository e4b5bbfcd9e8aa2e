/** Topic options between JSON text and the broker's typed options. Pure. */
import { EdgeError } from '../../errors.ts'
import type { TopicOptions } from '../../log/index.ts'
import { headerKindName } from '../../sdk/wire/header-values.ts'
import type { Option } from '../../sdk/wire/options.ts'
import { scalarOfOption } from '../broker/topic-option-catalog.ts'
import { derivedOptions, describeTopicOptions, explicitOptions, type TopicDefaults } from '../broker/topic-options.ts'
import type { JsonObject, JsonValue } from './json.ts'

export type OptionTexts = ReadonlyMap<string, string>

/** Streams and users have no options: any key is one too many. */
export function refuseOptions(given: OptionTexts | undefined): void {
  const [key] = (given ?? new Map<string, string>()).keys()
  if (key !== undefined)
    throw new EdgeError('EDGE_OPTION_UNKNOWN', `Unsupported option key: ${key}`, { details: { key } })
}

/** Every key with the value in force as text; `explicit` tells what the topic's creator asked for. */
export function viewOptions(options: TopicOptions, defaults: TopicDefaults): JsonObject {
  const explicit = explicitOptions(options).map((option) => [option.key, viewOption(option, true)] as const)
  const derived = derivedOptions(options, defaults).map((option) => [option.key, viewOption(option, false)] as const)
  return Object.fromEntries([...derived, ...explicit])
}

function viewOption(option: Option, explicit: boolean): JsonObject {
  const scalar = scalarOfOption(option)
  return { value: scalar instanceof Uint8Array ? Buffer.from(scalar).toString('base64') : String(scalar), explicit }
}

/** The catalogue as `GET /options/topic` shows it. */
export function viewOptionCatalogue(defaults: TopicDefaults): JsonValue {
  return describeTopicOptions(defaults).map(({ key, kind, defaultBytes, description }) => ({
    key,
    kind: headerKindName(kind) ?? 'raw',
    default_value: [...defaultBytes],
    description,
  }))
}
