import * as z from 'zod'

type Node = z.core.JSONSchema.JSONSchema

/** The JSON Schema of a tool's arguments, without what only costs tokens. */
export const inputSchema = (schema: z.ZodType): Record<string, unknown> => convert(schema, 'input', trim)

/** The JSON Schema of its answer: the fields and their types, those of records in it included. */
export const outputSchema = (schema: z.ZodType): Record<string, unknown> =>
  convert(schema, 'output', (node, path) => {
    trim(node)
    delete node.description
    delete node.enum
    delete node.additionalProperties
    if (path.length > 0) delete node.required
    if (path.filter((step) => step === 'properties').length > 1) delete node.properties
  })

function convert(
  schema: z.ZodType,
  io: 'input' | 'output',
  edit: (node: Node, path: readonly (string | number)[]) => void,
): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ jsonSchema, path }) => edit(jsonSchema, path),
  })
  return rest
}

/** Drops the bounds that an error explains, safe-integer bounds, schemas of keys and of values that may be anything. */
function trim(node: Node): void {
  delete node.propertyNames
  delete node.minLength
  if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum
  if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum
  const { additionalProperties: free } = node
  if (typeof free === 'object' && Object.keys(free).length === 0) delete node.additionalProperties
}
