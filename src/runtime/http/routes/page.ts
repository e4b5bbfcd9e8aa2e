/** `GET /`: the inspection page for browsers, Iggy's text for everybody else; and the files of the page. */
import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import { pageAssetNames, readAsset } from '../../executable/assets.ts'
import { type HttpRequest, plain, type Reply, type Route } from '../http-types.ts'

const BANNER = 'Iggy API'
const INDEX = 'page/index.html'
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}
/** Nothing but our own files and our own API: no inline script, no other host, no frame around us. */
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
} as const

export function pageRoutes(isPageServed: boolean): readonly Route[] {
  if (!isPageServed) return [{ method: 'GET', path: '/', access: 'public', handle: () => plain(BANNER) }]
  const files = pageAssetNames().map((name): Route => {
    const serve = assetServer(name)
    return { method: 'GET', path: `/edge/${name}`, access: 'public', handle: serve }
  })
  const serveIndex = assetServer(INDEX)
  const root: Route = {
    method: 'GET',
    path: '/',
    access: 'public',
    handle: (request) => (wantsHtml(request) ? serveIndex(request) : plain(BANNER)),
  }
  return [root, ...files]
}

function wantsHtml({ headers }: HttpRequest): boolean {
  return String(headers.accept ?? '').includes('text/html')
}

/** Bytes are read when they are first asked for; the tag spares a second transfer while the executable is the same. */
function assetServer(name: string): (request: HttpRequest) => Reply {
  let loaded: { readonly bytes: Uint8Array; readonly tag: string } | null = null
  return ({ headers }) => {
    if (loaded === null) {
      const bytes = readAsset(name)
      loaded = { bytes, tag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"` }
    }
    const common = { ...SECURITY_HEADERS, etag: loaded.tag, 'cache-control': 'no-cache', vary: 'accept' }
    if (headers['if-none-match'] === loaded.tag) return { status: 304, headers: common }
    const type = TYPES[extname(name)] ?? 'application/octet-stream'
    return { status: 200, headers: { ...common, 'content-type': type }, body: loaded.bytes }
  }
}
