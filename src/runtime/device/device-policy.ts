/** What a device token allows, as it is stored beside its hash. Pure. */
import { EdgeError } from '../../errors.ts'

export interface DevicePolicy {
  /** Device names, `*` as wildcard: `dev-0042`, or `dev-*` for provisioning. */
  readonly device: string
  /** Topics as `stream/topic`, `*` as wildcard, `{device}` stands for the name. */
  readonly publish: readonly string[]
  readonly subscribe: readonly string[]
  /** May read messages meant for other devices. */
  readonly anyKey: boolean
}

/** Patterns of one token; a bound, not a taste. */
const MAX_PATTERNS = 64

/** @throws EDGE_OPTION_INVALID saying which field. */
export function parseDevicePolicy(json: unknown): DevicePolicy {
  const found = (typeof json === 'object' && json !== null ? json : {}) as Record<string, unknown>
  const device = found.device
  if (typeof device !== 'string' || device === '' || device.length > 128) {
    throw new EdgeError(
      'EDGE_OPTION_INVALID',
      `device token: device: found ${JSON.stringify(device)}, expected a name or a pattern such as "dev-*"`,
    )
  }
  return {
    device,
    publish: patternsOf('publish', found.publish),
    subscribe: patternsOf('subscribe', found.subscribe),
    anyKey: found.any_key === true,
  }
}

export function formatDevicePolicy({ device, publish, subscribe, anyKey }: DevicePolicy): string {
  return JSON.stringify({ device, publish, subscribe, any_key: anyKey })
}

export function isDeviceAllowed(policy: DevicePolicy, deviceName: string): boolean {
  return matches(policy.device, deviceName)
}

export function isTopicAllowed(patterns: readonly string[], deviceName: string, topicName: string): boolean {
  return patterns.some((pattern) => matches(pattern.replaceAll('{device}', deviceName), topicName))
}

/** `*` stands for any characters but the slash that parts stream and topic. */
function matches(pattern: string, text: string): boolean {
  const source = pattern.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${source.join('[^/]*')}$`).test(text)
}

function patternsOf(field: string, found: unknown): readonly string[] {
  if (found === undefined) return []
  const isList = Array.isArray(found) && found.length <= MAX_PATTERNS
  if (isList && found.every((each) => typeof each === 'string' && each.includes('/') && each.length <= 512))
    return found as string[]
  const expected = `expected at most ${MAX_PATTERNS} patterns of stream/topic, such as "sensors/*"`
  throw new EdgeError('EDGE_OPTION_INVALID', `device token: ${field}: ${expected}, found ${JSON.stringify(found)}`)
}
