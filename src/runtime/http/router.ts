/**
 * Finds the route of a method and path. Our own, because it is small and because Iggy's clients see its edge cases: no
 * trailing slash is forgiven, an unknown path is 404 and a known one with another method 405 with `Allow`. Pure.
 */
import { wrongPath } from './rejection.ts'

export interface Pattern {
  readonly method: string
  /** `/streams/{stream_id}`: a segment in braces takes any text. */
  readonly path: string
}

export type Match<R extends Pattern> =
  | { readonly type: 'found'; readonly route: R; readonly params: ReadonlyMap<string, string> }
  | { readonly type: 'method-not-allowed'; readonly allow: string }
  | { readonly type: 'not-found' }

interface Node<R> {
  readonly children: Map<string, Node<R>>
  wildcard: { readonly name: string; readonly node: Node<R> } | null
  readonly routes: Map<string, R>
}

export class Router<R extends Pattern> {
  private readonly root: Node<R> = createNode()

  constructor(routes: Iterable<R>) {
    for (const route of routes) this.add(route)
  }

  /**
   * @param path still percent-encoded, without the query.
   * @throws {EdgeError} EDGE_COMMAND_MALFORMED (400) when a variable segment is no UTF-8.
   */
  match(method: string, path: string): Match<R> {
    const raw: [name: string, segment: string][] = []
    const node = find(this.root, segmentsOf(path), 0, raw)
    if (node === undefined || node.routes.size === 0) return { type: 'not-found' }
    const route = node.routes.get(method) ?? (method === 'HEAD' ? node.routes.get('GET') : undefined)
    if (route === undefined) return { type: 'method-not-allowed', allow: allowOf(node) }
    return { type: 'found', route, params: new Map(raw.map(([name, segment]) => [name, decode(name, segment)])) }
  }

  /** @returns the value of `Allow` for a path, or undefined for an unknown one. */
  allow(path: string): string | undefined {
    const node = find(this.root, segmentsOf(path), 0, [])
    return node === undefined || node.routes.size === 0 ? undefined : allowOf(node)
  }

  private add(route: R): void {
    let node = this.root
    for (const segment of segmentsOf(route.path)) {
      if (segment.startsWith('{')) {
        node.wildcard ??= { name: segment.slice(1, -1), node: createNode() }
        node = node.wildcard.node
      } else {
        const child = node.children.get(segment) ?? createNode<R>()
        node.children.set(segment, child)
        node = child
      }
    }
    node.routes.set(route.method, route)
  }
}

const createNode = <R>(): Node<R> => ({ children: new Map(), wildcard: null, routes: new Map() })
const segmentsOf = (path: string): string[] => path.split('/').slice(1)

/** A fixed segment wins over a variable one, which is tried when nothing follows it. */
function find<R>(node: Node<R>, segments: string[], depth: number, raw: [string, string][]): Node<R> | undefined {
  const segment = segments[depth]
  if (segment === undefined) return node
  const child = node.children.get(segment)
  const found = child === undefined ? undefined : find(child, segments, depth + 1, raw)
  if (found !== undefined && found.routes.size > 0) return found
  if (node.wildcard === null || segment === '') return found
  raw.push([node.wildcard.name, segment])
  const behind = find(node.wildcard.node, segments, depth + 1, raw)
  if (behind === undefined || behind.routes.size === 0) raw.pop()
  return behind
}

/** GET stands first and brings HEAD; no space after the comma, as clients of Iggy see it. */
function allowOf<R>(node: Node<R>): string {
  const methods = [...node.routes.keys()].filter((method) => method !== 'GET')
  return (node.routes.has('GET') ? ['GET', 'HEAD', ...methods] : methods).join(',')
}

function decode(name: string, segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw wrongPath(`Invalid UTF-8 in \`${name}\``)
  }
}
