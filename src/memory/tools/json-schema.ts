import * as z from 'zod'
import { agentSchema, collectionSchema, edgeSchema, memorySchema, workspaceSchema } from '../model.ts'
import { chunkerId } from '../requests.ts'

/** Records whose fields the answer of a tool of their own lists: in lists they are objects, which costs fewer tokens. */
const LISTED_ELSEWHERE: ReadonlySet<z.core.$ZodType> = new Set([
  agentSchema,
  collectionSchema,
  edgeSchema,
  memorySchema,
  workspaceSchema,
])

type Node = z.core.JSONSchema.JSONSchema

const BOUNDS = [
  'propertyNames',
  'minLength',
  'maxLength',
  'pattern',
  'format',
  'exclusiveMinimum',
  'minItems',
  'maxItems',
  'maxProperties',
  'description',
] as const

/** The JSON Schema of a tool's arguments, without what only costs tokens. */
export const inputSchema = (schema: z.ZodType): Record<string, unknown> => convert(schema, 'input', trim)

/** The JSON Schema of its answer: the fields and their types, those of records in it included. */
export const outputSchema = (schema: z.ZodType): Record<string, unknown> =>
  convert(schema, 'output', (node, path, of) => {
    trim(node, path, of)
    delete node.enum
    delete node.additionalProperties
    if (path.length > 0) delete node.required
    const isKnown = path.includes('items') && LISTED_ELSEWHERE.has(of)
    if (isKnown || path.filter((step) => step === 'properties').length > 1) delete node.properties
  })

function convert(
  schema: z.ZodType,
  io: 'input' | 'output',
  edit: (node: Node, path: readonly (string | number)[], of: z.core.$ZodType) => void,
): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ jsonSchema, path, zodSchema }) => edit(jsonSchema, path, zodSchema),
  })
  return rest
}

/** Drops the bounds that an error explains, safe-integer bounds, and of maps all but the type of plain values. */
function trim(node: Node, _path: unknown, of: z.core.$ZodType): void {
  for (const bound of BOUNDS) delete node[bound]
  if (of === chunkerId) delete node.enum
  if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum
  if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum
  if (typeof node.additionalProperties !== 'object') return
  const { type } = node.additionalProperties
  if (type === undefined) delete node.additionalProperties
  else node.additionalProperties = { type }
}
