import * as z from 'zod'
import { version } from '../../base/version.ts'
import { pathTemplate } from '../../http/path-template.ts'
import { healthAnswer, readyAnswer } from '../answers.ts'
import { MEMORY_ERRORS, type MemoryErrorCode } from '../errors.ts'
import { ID } from '../model.ts'
import { agentIdSchema, tagKeySchema } from '../requests.ts'
import { exampleOf, parameterExample } from './examples.ts'
import { describedBy, type Json, Names, schemaOf, titleOf, uriOf } from './document-schemas.ts'
import { OPERATIONS, type Operation, type OperationName, TAGS } from './operations.ts'
import type { Route } from './route.ts'

const AGENT = { name: 'Mem-Agent-Id', type: agentIdSchema.describe('The agent that writes'), example: 'agent_keeper' }
const header = (name: string, description: string, type = z.string()) => ({ name, type: type.describe(description) })
const HEADERS = {
  agent: { ...AGENT, required: true },
  optionalAgent: AGENT,
  identityProvider: header('Mem-Identity-Provider', 'Who checks the agent; `opaque` when absent'),
  identityProof: header('Mem-Identity-Proof', 'base64url of the JSON object that the provider checks'),
  ifMatch: header('If-Match', 'The expected watermark; beats `expected_watermark`'),
  idempotencyKey: header(
    'Idempotency-Key',
    'A repeat with the same key and body gets the first answer, for 24 h',
    z.string().min(1).max(200),
  ),
  tenant: header('X-Mem-Workspace', 'The workspace, in multi-tenant mode; the path then says `-` or the same'),
}

const EXPECTS_WATERMARK: ReadonlySet<OperationName> = new Set(['update', 'patch', 'append', 'forget'])

const REFUSAL = { error_code: 'invalid_input', message: 'content is required', details: { field: 'content' } }

const DESCRIPTION = `Requests and answers are JSON in UTF-8, at most 8 MiB. Where a key is configured, each request carries it as
\`Authorization: Bearer <key>\`. Every answer has \`X-Request-ID\`, which the log and the ledger name too. Errors are
\`{"error_code", "message", "details"}\`; programs look at \`error_code\`. Lists go on with \`cursor\` while they give
\`next_cursor\`.`

/** The OpenAPI 3.1 document of the routes: made of the schemas that check the requests, so it says what they do. */
export function openApiDocument(routes: readonly Route[]): Json {
  const names = new Names(routes)
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const path = `/v1${pathTemplate(route.path)}`
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, names) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'mem',
      summary: 'Memory for agents',
      description: DESCRIPTION.replaceAll('\n', ' '),
      version,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    // Without a key configured, none is asked for.
    security: [{ key: [] }, {}],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths: {
      ...paths,
      '/healthz': { get: probe('health', 'Tell that the server lives', { 200: healthAnswer }) },
      '/readyz': { get: probe('ready', 'Tell whether the stores answer', { 200: readyAnswer, 503: readyAnswer }) },
    },
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'The key of the server' } },
      parameters: Object.fromEntries(
        Object.entries(HEADERS).map(([key, { type, ...facts }]) => [
          key,
          { in: 'header', ...facts, ...describedBy(type) },
        ]),
      ),
      headers: { etag: { description: 'The quoted watermark', schema: { type: 'string' } } },
      responses: {
        error: { description: 'Refused, or failed', content: asJson({ $ref: uriOf('Error') }, REFUSAL) },
      },
      schemas: names.schemas,
    },
  }
}

function operationOf(route: Route, names: Names): Json {
  const { operation, body, status = 200, etag } = route
  const { summary, description, answer, query = {}, example }: Operation = OPERATIONS[operation]
  const title = titleOf(operation)
  const tag = tagOf(route.path)
  const schema = answer && names.answer(answer, `${title}Answer`)
  return {
    operationId: operation,
    summary,
    ...(description !== undefined && { description }),
    tags: [tag],
    parameters: [...pathParameters(route.path, tag), ...queryParameters(query), ...headersOf(route)],
    ...(body && {
      requestBody: { required: true, content: asJson(names.request(body, `${title}Request`), example) },
    }),
    responses: {
      [status]: {
        description: schema ? 'Done' : 'Done; no body',
        ...(etag && { headers: { ETag: { $ref: '#/components/headers/etag' } } }),
        ...(schema && { content: asJson(schema, exampleOf(schema, names.schemas)) }),
      },
      ...refusals(codesOf(route)),
      default: { $ref: '#/components/responses/error' },
    },
  }
}

/** What the pipeline refuses this route with, and what the operation does. Contract: memory.md 2.4. */
function codesOf({ operation, path, body, agent, graph, idempotent }: Route): MemoryErrorCode[] {
  const { errors = [] }: Operation = OPERATIONS[operation]
  const codes: [MemoryErrorCode, unknown][] = [
    ['invalid_input', true],
    ['missing_agent_id', agent === 'required'],
    ['unauthorized', true],
    ['agent_verification_failed', agent],
    ['not_found', path.includes('/:')],
    ['already_exists', idempotent && body],
    ['internal_error', true],
    ['capability_unavailable', graph],
  ]
  const common = codes.filter(([, applies]) => applies).map(([code]) => code)
  return [...new Set([...common, ...errors])]
}

/** One answer a status, which names the codes that it may have. */
function refusals(codes: readonly MemoryErrorCode[]): Json {
  const statuses = new Set(codes.map((code) => MEMORY_ERRORS[code]))
  return Object.fromEntries(
    [...statuses].map((status) => {
      const group = codes.filter((code) => MEMORY_ERRORS[code] === status)
      return [
        status,
        { $ref: '#/components/responses/error', description: group.map((code) => `\`${code}\``).join(', ') },
      ]
    }),
  )
}

const pathParameters = (path: string, tag: string): Json[] =>
  [...pathTemplate(path).matchAll(/\{(\w+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    ...describedBy((name === 'id' ? PATH_IDS[tag] : PATH_PARTS[name]) ?? z.string()),
    example: parameterExample(name, tag),
  }))

const PATH_PARTS: Readonly<Record<string, z.ZodType>> = {
  ws: z.string().describe('The workspace'), // or `-`
  key: tagKeySchema.describe('The key of the tag'),
  watermark: ID.watermark.describe('One that the Memory has had'),
}
const PATH_IDS: Readonly<Record<string, z.ZodType>> = {
  collections: ID.collection.describe('The collection'),
  memories: ID.memory.describe('The Memory'),
  recall: ID.pin.describe('The pin'),
  edges: ID.edge.describe('The Edge'),
  agents: agentIdSchema.describe('The agent'),
}

const queryParameters = (query: Readonly<Record<string, z.ZodType>>): Json[] =>
  Object.entries(query).map(([name, type]) => ({ name, in: 'query', ...describedBy(type) }))

const headersOf = ({ operation, agent, idempotent }: Route): Json[] => [
  ...(agent
    ? [ref(agent === 'required' ? 'agent' : 'optionalAgent'), ref('identityProvider'), ref('identityProof')]
    : []),
  ...(EXPECTS_WATERMARK.has(operation) ? [ref('ifMatch')] : []),
  ...(idempotent ? [ref('idempotencyKey')] : []),
  ref('tenant'),
]

const ref = (name: keyof typeof HEADERS): Json => ({ $ref: `#/components/parameters/${name}` })

/** The first word behind the workspace. */
const tagOf = (path: string): string => /^\/workspaces\/:ws\/(\w+)/.exec(path)?.[1] ?? 'workspaces'

const asJson = (schema: Json, example?: unknown): Json => ({
  'application/json': { schema, ...(example !== undefined && { example }) },
})

/** A route that the pipeline does not serve: memory.md 3.7. */
function probe(operationId: string, summary: string, answers: Readonly<Record<number, z.ZodType>>): Json {
  const responses = Object.entries(answers).map(([status, answer]) => {
    const schema = schemaOf(answer, 'output')
    return [
      status,
      { description: Number(status) < 300 ? 'Done' : 'Down', content: asJson(schema, exampleOf(schema, {})) },
    ]
  })
  const refused = refusals(['unauthorized', 'internal_error'])
  return {
    operationId,
    summary,
    tags: ['operation'],
    parameters: [],
    responses: { ...Object.fromEntries(responses), ...refused },
  }
}
