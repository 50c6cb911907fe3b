import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { packageRoot } from '../base/package-root.ts'
import type { Route } from '../http/routes.ts'
import { ConsoleError } from './errors.ts'
import { pageRequest } from './pages/page.ts'

const own = (name: string): string => join(packageRoot, 'templates/console/static', name)
const packages = createRequire(import.meta.url)

const OWN = [
  'away.js',
  'base.css',
  'console.js',
  'content.css',
  'controls.css',
  'gateway.css',
  'gateway.js',
  'gateway-alias-form.js',
  'gateway-audit.js',
  'gateway-charts.js',
  'gateway-credential-form.js',
  'gateway-credentials.js',
  'gateway-dialog.js',
  'gateway-elements.js',
  'gateway-explainer.js',
  'gateway-key-form.js',
  'gateway-keys.js',
  'gateway-kinds.js',
  'gateway-listing.js',
  'gateway-metrics-token.js',
  'gateway-models.js',
  'gateway-playground.js',
  'gateway-request.js',
  'gateway-session.js',
  'gateway-settings.js',
  'gateway-stream.js',
  'gateway-tables.css',
  'gateway-usage.css',
  'gateway-usage.js',
  'graph.css',
  'graph.js',
  'icon.svg',
  'kernel.css',
  'pages.css',
  'recall.css',
  'reference.css',
  'theme.js',
]

/** All that `/ui/static/` serves: our own files, and those of packages from where npm put them. */
const FILES: Readonly<Record<string, () => string>> = {
  ...Object.fromEntries(OWN.map((name) => [name, () => own(name)])),
  'htmx.js': () => packages.resolve('htmx.org/dist/htmx.min.js'),
  'htmx-sse.js': () => packages.resolve('htmx.org/dist/ext/hx-sse.min.js'),
  'cytoscape.js': () => packages.resolve('cytoscape/dist/cytoscape.min.js'),
}

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
}

interface StaticFile {
  bytes: Buffer
  zipped: Buffer
  etag: string
  type: string
}

const compress = promisify(gzip)
const loaded = new Map<string, Promise<StaticFile>>()

async function load(name: string): Promise<StaticFile> {
  const locate = FILES[name]
  if (!locate) throw new ConsoleError('not_found', `There is no file /ui/static/${name}.`)
  const bytes = await readFile(locate())
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 16)}"`
  return { bytes, zipped: await compress(bytes), etag, type: TYPES[name.split('.').at(-1) ?? ''] ?? '' }
}

/** Serves the files of the console from memory, compressed once. Browsers ask each time whether they changed. */
export const serveStatic: Route['handle'] = async (request, reply) => {
  const name = pageRequest(request).param('file')
  const known = loaded.get(name) ?? load(name)
  if (name in FILES) loaded.set(name, known)
  const file = await known
  reply.headers({ 'Cache-Control': 'no-cache', ETag: file.etag, Vary: 'Accept-Encoding' }).type(file.type)
  if (request.headers['if-none-match'] === file.etag) return reply.code(304).send()
  if (!/\bgzip\b/.test(request.headers['accept-encoding'] ?? '')) return reply.send(file.bytes)
  return reply.header('Content-Encoding', 'gzip').send(file.zipped)
}
