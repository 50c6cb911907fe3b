import { isMap } from '../base/json.ts'
import { version } from '../base/version.ts'
import type { ToolDescription } from '../memory/tools/index.ts'
import { ERRORS, RpcError, type Params } from './frames.ts'

/** What one revision of the protocol shows of the same tools and answers: versions live here and nowhere else. */
export interface Revision {
  readonly id: string
  readonly describe: (tool: ToolDescription) => object
  /** The answer of a tool also as a value, not only as its text. */
  readonly structured: boolean
  /** No handshake, no connection: each request says all of itself. */
  readonly stateless: boolean
}

const bare = ({ name, description, inputSchema }: ToolDescription): object => ({ name, description, inputSchema })
const annotated = ({ outputSchema: _, ...rest }: ToolDescription): object => rest
const whole = (tool: ToolDescription): object => tool

const handshake = { stateless: false, structured: false }
/** When a client asks for none of the others. */
export const DEFAULT_REVISION: Revision = { id: '2024-11-05', describe: bare, ...handshake }
const HANDSHAKE_REVISIONS: readonly Revision[] = [
  DEFAULT_REVISION,
  { id: '2025-03-26', describe: annotated, ...handshake },
  { id: '2025-06-18', describe: whole, stateless: false, structured: true },
  { id: '2025-11-25', describe: whole, stateless: false, structured: true },
]
/** Of a request over HTTP that names none. */
export const UNNAMED_REVISION = '2025-03-26'
export const STATELESS_REVISION: Revision = { id: '2026-07-28', describe: whole, structured: true, stateless: true }

/** The revision that `initialize` settles on. Contract: memory.md 12.1. */
export const negotiate = (asked: unknown): Revision => findHandshake(asked) ?? DEFAULT_REVISION

export const findHandshake = (id: unknown): Revision | undefined =>
  HANDSHAKE_REVISIONS.find((revision) => revision.id === id)

export const serverInfo = { name: 'mem', version }
export const capabilities = { tools: { listChanged: false } }

const META = 'io.modelcontextprotocol/'

/** What `_meta` holds of a request or of its `initialize`. */
export const metaOf = (params: Params): Params => (isMap(params['_meta']) ? params['_meta'] : {})

/** The revision that a stateless request names; undefined for one inside a handshake. */
export const namedRevision = (params: Params): unknown => metaOf(params)[`${META}protocolVersion`]

/** @throws RpcError when the request is not one of the stateless revision that we speak, or is not whole. */
export function requireEnvelope(params: Params): void {
  const requested = namedRevision(params)
  if (typeof requested !== 'string') throw incomplete('protocolVersion')
  if (requested !== STATELESS_REVISION.id) throw unsupported(requested)
  if (!isMap(metaOf(params)[`${META}clientCapabilities`])) throw incomplete('clientCapabilities')
}

export const unsupported = (requested: string): RpcError =>
  new RpcError(
    ERRORS.unsupportedRevision,
    `revision ${requested} is not spoken here`,
    { supported: [STATELESS_REVISION.id], requested },
    400,
  )

const incomplete = (field: string): RpcError =>
  new RpcError(
    ERRORS.arguments,
    `_meta must hold ${META}${field}`,
    { error_code: 'invalid_input', status: 400, details: { field: `_meta.${META}${field}` } },
    400,
  )

/** How long a client may keep what is the same for everybody until the server is replaced. */
const CACHE = { ttlMs: 300_000, cacheScope: 'public' }

/** A result, which is JSON and not empty, as a stateless request gets it. */
export function statelessResult(method: string, result: string): string {
  const rest = { ...(method !== 'tools/call' && CACHE), _meta: { [`${META}serverInfo`]: serverInfo } }
  return `{"resultType":"complete",${result.slice(1, -1)},${JSON.stringify(rest).slice(1)}`
}
