import * as z from 'zod'
import { version } from '../../base/version.ts'
import { pathTemplate } from '../../http/path-template.ts'
import { healthAnswer, NAMED, readyAnswer } from '../answers.ts'
import { OPERATIONS, type Operation, type OperationName } from './operations.ts'
import type { Route } from './route.ts'

type Json = Record<string, unknown>

const AGENT = {
  name: 'Mem-Agent-Id',
  description: 'The agent that writes',
  schema: { type: 'string', minLength: 1, maxLength: 200 },
}
const HEADERS = {
  agent: { ...AGENT, required: true },
  optionalAgent: AGENT,
  identityProvider: { name: 'Mem-Identity-Provider', description: 'Who checks the agent; `opaque` when absent' },
  identityProof: { name: 'Mem-Identity-Proof', description: 'base64url of the JSON object that the provider checks' },
  ifMatch: { name: 'If-Match', description: 'The expected watermark; beats `expected_watermark`' },
  idempotencyKey: {
    name: 'Idempotency-Key',
    description: 'A repeat with the same key and body gets the first answer, for 24 h',
    schema: { type: 'string', minLength: 1, maxLength: 200 },
  },
  tenant: {
    name: 'X-Mem-Workspace',
    description: 'The workspace, in multi-tenant mode; the path then says `-` or the same',
  },
} as const

const EXPECTS_WATERMARK: ReadonlySet<OperationName> = new Set(['update', 'patch', 'append', 'forget'])

/** The OpenAPI 3.1 document of the routes: made of the schemas that check the requests, so it says what they do. */
export function openApiDocument(routes: readonly Route[]): Json {
  const names = new Names()
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
      version,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    // Without a key configured, none is asked for.
    security: [{ key: [] }, {}],
    paths: {
      ...paths,
      '/healthz': { get: probe('health', 'Tell that the server lives', { 200: healthAnswer }) },
      '/readyz': { get: probe('ready', 'Tell whether the stores answer', { 200: readyAnswer, 503: readyAnswer }) },
    },
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer' } },
      parameters: Object.fromEntries(
        Object.entries(HEADERS).map(([key, header]) => [key, { in: 'header', schema: { type: 'string' }, ...header }]),
      ),
      headers: { etag: { description: 'The quoted watermark', schema: { type: 'string' } } },
      responses: {
        error: { description: 'Refused, or failed', content: jsonOf({ $ref: '#/components/schemas/Error' }) },
      },
      schemas: names.schemas(),
    },
  }
}

/** Schemas that go under `components`; each keeps the first name it gets. */
class Names {
  readonly #inputs = z.registry<{ id: string }>()
  readonly #outputs = z.registry<{ id: string }>()

  constructor() {
    for (const [id, schema] of Object.entries(NAMED)) this.#outputs.add(schema, { id })
  }

  request(schema: z.ZodType, id: string): Json {
    return this.#ref(this.#inputs, schema, id)
  }

  answer(schema: z.ZodType, id: string): Json {
    return this.#ref(this.#outputs, schema, id)
  }

  schemas(): Json {
    return { ...componentsOf(this.#outputs, 'output'), ...componentsOf(this.#inputs, 'input') }
  }

  #ref(registry: z.core.$ZodRegistry<{ id: string }>, schema: z.ZodType, id: string): Json {
    if (!registry.has(schema)) registry.add(schema, { id })
    return { $ref: uriOf(registry.get(schema)?.id ?? id) }
  }
}

const uriOf = (id: string): string => `#/components/schemas/${id}`

function componentsOf(registry: z.core.$ZodRegistry<{ id: string }>, io: 'input' | 'output'): Json {
  const { schemas } = z.toJSONSchema(registry, {
    io,
    uri: uriOf,
    unrepresentable: 'any',
    override: ({ jsonSchema }) => trim(jsonSchema, io),
  })
  return Object.fromEntries(
    Object.entries(schemas).map(([id, { $schema: _schema, $id: _id, ...schema }]) => [id, schema]),
  )
}

/** Drops the bounds of what a number can hold. A reader of answers must bear keys that come later. */
function trim(node: z.core.JSONSchema.JSONSchema, io: 'input' | 'output'): void {
  if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum
  if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum
  if (io === 'output' && node.additionalProperties === false) delete node.additionalProperties
}

function operationOf(route: Route, names: Names): Json {
  const { operation, body, status = 200, etag } = route
  const { summary, answer, query = {} }: Operation = OPERATIONS[operation]
  const title = operation[0]?.toUpperCase() + operation.slice(1)
  return {
    operationId: operation,
    summary,
    tags: [tagOf(route.path)],
    parameters: [...pathParameters(route.path), ...queryParameters(query), ...headersOf(route)],
    ...(body && { requestBody: { required: true, content: jsonOf(names.request(body, `${title}Request`)) } }),
    responses: {
      [status]: {
        description: answer ? 'Done' : 'Done; no body',
        ...(etag && { headers: { ETag: { $ref: '#/components/headers/etag' } } }),
        ...(answer && { content: jsonOf(names.answer(answer, `${title}Answer`)) }),
      },
      default: { $ref: '#/components/responses/error' },
    },
  }
}

const pathParameters = (path: string): Json[] =>
  [...pathTemplate(path).matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))

const queryParameters = (query: Readonly<Record<string, z.ZodType>>): Json[] =>
  Object.entries(query).map(([name, type]) => {
    const {
      $schema: _,
      description,
      ...schema
    } = z.toJSONSchema(type, { override: ({ jsonSchema }) => trim(jsonSchema, 'input') })
    return { name, in: 'query', ...(description !== undefined && { description }), schema }
  })

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

const jsonOf = (schema: Json): Json => ({ 'application/json': { schema } })

/** A route that the pipeline does not serve: memory.md 3.7. */
function probe(operationId: string, summary: string, answers: Readonly<Record<number, z.ZodType>>): Json {
  const responses = Object.entries(answers).map(([status, answer]) => {
    const { $schema: _, ...schema } = z.toJSONSchema(answer, {
      override: ({ jsonSchema }) => trim(jsonSchema, 'output'),
    })
    return [status, { description: Number(status) < 300 ? 'Done' : 'Down', content: jsonOf(schema) }]
  })
  return { operationId, summary, tags: ['operation'], responses: Object.fromEntries(responses) }
}
