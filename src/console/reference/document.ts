import * as z from 'zod'

/** The API document as the page shows it: made for reading, with every reference resolved. */
export interface Reference {
  description: string
  tags: { name: string; description: string; operations: Operation[] }[]
}

export interface Operation {
  id: string
  method: (typeof METHODS)[number]
  /** With `{name}` for its parameters. */
  path: string
  summary: string
  description: string | undefined
  parameters: Parameter[]
  body: { fields: Field[]; example: string } | undefined
  answers: { status: string; description: string; fields: Field[]; example: string | undefined }[]
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  isRequired: boolean
  description: string
  type: string
  /** What it may be, where that is a short list. */
  choices: string[]
  example: string
}

/** A line of the table that tells a schema; what is inside another field stands deeper. */
export interface Field {
  name: string
  depth: number
  type: string
  isRequired: boolean
  description: string
}

const DEPTH_MAX = 3
const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

const json = z.record(z.string(), z.unknown())
const parameterSchema = z.object({
  name: z.string(),
  in: z.enum(['path', 'query', 'header']),
  required: z.boolean().default(false),
  description: z.string().default(''),
  schema: json,
  example: z.string().default(''),
})
const contentSchema = z
  .object({ 'application/json': z.object({ schema: json, example: z.unknown().optional() }) })
  .optional()
const responseSchema = z.object({ description: z.string(), content: contentSchema })
const operationSchema = z.object({
  operationId: z.string(),
  summary: z.string(),
  description: z.string().optional(),
  tags: z.array(z.string()),
  parameters: z.array(json),
  requestBody: z.object({ content: contentSchema }).optional(),
  responses: z.record(z.string(), json),
})
const documentSchema = z.object({
  info: z.object({ description: z.string() }),
  tags: z.array(z.object({ name: z.string(), description: z.string() })),
  paths: z.record(z.string(), z.partialRecord(z.enum(METHODS), operationSchema)),
  components: z.record(z.string(), json),
})
type Document = z.infer<typeof documentSchema>
type Json = z.infer<typeof json>

/** @param source the document as `/v1/openapi.json` gives it */
export function readReference(source: unknown): Reference {
  const document = documentSchema.parse(source)
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    METHODS.flatMap((method) => {
      const operation = methods[method]
      return operation ? [{ tags: operation.tags, shown: readOperation(document, path, method, operation) }] : []
    }),
  )
  return {
    description: document.info.description,
    tags: document.tags.map(({ name, description }) => ({
      name,
      description,
      operations: operations.filter(({ tags }) => tags.includes(name)).map(({ shown }) => shown),
    })),
  }
}

function readOperation(
  document: Document,
  path: string,
  method: Operation['method'],
  operation: z.infer<typeof operationSchema>,
): Operation {
  const body = operation.requestBody?.content?.['application/json']
  const statuses = Object.entries(operation.responses).filter(([status]) => status !== 'default')
  return {
    id: operation.operationId,
    method,
    path,
    summary: operation.summary,
    description: operation.description,
    parameters: operation.parameters.map((each) => readParameter(resolve(document, each))),
    body: body && { fields: fieldsOf(document, body.schema), example: textOf(body.example) },
    answers: statuses.map(([status, each]) => {
      const { description, content } = responseSchema.parse(resolve(document, each))
      const answer = Number(status) < 400 ? content?.['application/json'] : undefined
      return {
        status,
        description,
        fields: answer ? fieldsOf(document, answer.schema) : [],
        example: answer && textOf(answer.example),
      }
    }),
  }
}

function readParameter(source: Json): Parameter {
  const { name, in: place, required, description, schema, example } = parameterSchema.parse(source)
  const type = typeof schema['type'] === 'string' ? schema['type'] : 'string'
  const choices = Array.isArray(schema['enum'])
    ? schema['enum'].map(String)
    : type === 'boolean'
      ? ['true', 'false']
      : []
  return {
    name,
    in: place,
    isRequired: required,
    description,
    type,
    choices,
    example,
  }
}

/** What a reference leads to; what stands beside it wins. */
function resolve({ components }: Document, node: Json): Json {
  const { $ref: reference, ...beside } = node
  if (typeof reference !== 'string') return node
  const [kind = '', name = ''] = reference.replace('#/components/', '').split('/')
  return { ...json.parse(components[kind]?.[name]), ...beside }
}

function fieldsOf(document: Document, source: Json, depth = 0): Field[] {
  const schema = itemOf(document, source)
  const properties = json.safeParse(schema['properties']).data ?? {}
  const required: unknown = schema['required']
  return Object.entries(properties).flatMap(([name, property]) => {
    const node = json.parse(property)
    const { description = '' } = resolve(document, node)
    const isRequired = Array.isArray(required) && required.includes(name)
    const field = { name, depth, type: typeOf(node), isRequired, description: String(description) }
    return depth < DEPTH_MAX ? [field, ...fieldsOf(document, node, depth + 1)] : [field]
  })
}

/** A list's fields are those of what is in it. */
function itemOf(document: Document, node: Json): Json {
  const schema = resolve(document, node)
  return schema['items'] === undefined ? schema : itemOf(document, json.parse(schema['items']))
}

function typeOf(node: Json): string {
  if (typeof node['$ref'] === 'string') return node['$ref'].split('/').at(-1) ?? ''
  const { enum: choices, anyOf, type, items } = node
  if ('const' in node) return JSON.stringify(node['const'])
  if (Array.isArray(choices)) return choices.join(' | ')
  if (Array.isArray(anyOf)) return [...new Set(anyOf.map((each) => typeOf(json.parse(each))))].join(' | ')
  if (type === 'array') return `list of ${items === undefined ? 'anything' : typeOf(json.parse(items))}`
  return typeof type === 'string' ? type : 'anything'
}

const textOf = (example: unknown): string => JSON.stringify(example, null, 2)
