/**
 * Which local topics go where. A pattern names `stream/topic` with `*` for any run of characters but the slash; a target
 * names `upstream:stream/topic` and may use `{stream}` and `{topic}` of the local side. Pure.
 */
import { EdgeError } from '../../errors.ts'

export interface RouteSpec {
  /** Local `stream/topic` with `*` as wildcard, such as `sensors/*`. */
  readonly from: string
  /** `upstream:stream/topic`, such as `central:site-7/{topic}`. */
  readonly to: string
}

export interface TopicName {
  readonly streamName: string
  readonly topicName: string
}

export interface Route {
  /** Name of the route in cursors and metrics: pattern and target as configured. */
  readonly name: string
  readonly upstreamName: string
  /** @returns the upstream topic of a local one, or undefined when the pattern does not match. */
  target(local: TopicName): TopicName | undefined
}

/** Iggy's bound on names of streams and topics, in bytes of UTF-8. */
const MAX_NAME_BYTES = 255
const PLACEHOLDERS = new Set(['stream', 'topic'])

/**
 * @throws {EdgeError} EDGE_CONFIG_INVALID that names the route and what was expected of it.
 */
export function parseRoute(spec: RouteSpec): Route {
  const matches = parsePattern(spec.from)
  const { upstreamName, streamTemplate, topicTemplate } = parseTarget(spec)
  return {
    name: `${spec.from} > ${spec.to}`,
    upstreamName,
    target(local) {
      if (!matches(local)) return undefined
      return { streamName: fill(streamTemplate, local), topicName: fill(topicTemplate, local) }
    },
  }
}

function parsePattern(from: string): (local: TopicName) => boolean {
  const parts = from.split('/')
  const [stream, topic] = parts
  if (parts.length !== 2 || !stream || !topic) {
    throw new EdgeError('EDGE_CONFIG_INVALID', `sync route from "${from}": expected stream/topic, such as sensors/*`)
  }
  const streamPattern = wildcard(stream)
  const topicPattern = wildcard(topic)
  return (local) => streamPattern.test(local.streamName) && topicPattern.test(local.topicName)
}

function wildcard(text: string): RegExp {
  const literal = text.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${literal.join('[^/]*')}$`, 'u')
}

function parseTarget({ from, to }: RouteSpec): { upstreamName: string; streamTemplate: string; topicTemplate: string } {
  const colon = to.indexOf(':')
  const slash = to.indexOf('/', colon)
  if (colon <= 0 || slash <= colon + 1 || slash === to.length - 1 || to.includes('/', slash + 1)) {
    throw new EdgeError('EDGE_CONFIG_INVALID', `sync route from "${from}" to "${to}": expected upstream:stream/topic`)
  }
  for (const [, name = ''] of to.matchAll(/\{([^}]*)\}/g)) {
    if (PLACEHOLDERS.has(name)) continue
    throw new EdgeError(
      'EDGE_CONFIG_INVALID',
      `sync route from "${from}" to "${to}": expected {stream} or {topic}, found {${name}}`,
    )
  }
  return {
    upstreamName: to.slice(0, colon),
    streamTemplate: to.slice(colon + 1, slash),
    topicTemplate: to.slice(slash + 1),
  }
}

function fill(template: string, local: TopicName): string {
  // In one pass, and by a function: names may hold a placeholder, or what `replaceAll` reads as one ("$&").
  const name = template.replaceAll(/\{(stream|topic)\}/g, (_, which) =>
    which === 'stream' ? local.streamName : local.topicName,
  )
  const sizeBytes = new TextEncoder().encode(name).length
  if (sizeBytes <= MAX_NAME_BYTES) return name
  throw new EdgeError('EDGE_NAME_INVALID', `upstream name of ${sizeBytes} bytes: at most ${MAX_NAME_BYTES}`, {
    details: { template, stream: local.streamName, topic: local.topicName },
  })
}
