import * as z from 'zod'
import { NAMED } from '../answers.ts'
import { OPERATIONS, type Operation } from './operations.ts'
import type { Route } from './route.ts'

/** The schemas of the document in JSON Schema, made of those that check the requests. */

export type Json = Record<string, unknown>

/** Schemas that go under `components`; each keeps the first name it gets. */
export class Names {
  readonly #inputs = z.registry<{ id: string }>()
  readonly #outputs = z.registry<{ id: string }>()
  readonly schemas: Json

  constructor(routes: readonly Route[]) {
    for (const [id, schema] of Object.entries(NAMED)) this.#outputs.add(schema, { id })
    for (const { operation, body } of routes) {
      const { answer }: Operation = OPERATIONS[operation]
      if (answer) this.answer(answer, `${titleOf(operation)}Answer`)
      if (body) this.request(body, `${titleOf(operation)}Request`)
    }
    this.schemas = { ...componentsOf(this.#outputs, 'output'), ...componentsOf(this.#inputs, 'input') }
  }

  request(schema: z.ZodType, id: string): Json {
    return this.#ref(this.#inputs, schema, id)
  }

  answer(schema: z.ZodType, id: string): Json {
    return this.#ref(this.#outputs, schema, id)
  }

  #ref(registry: z.core.$ZodRegistry<{ id: string }>, schema: z.ZodType, id: string): Json {
    if (!registry.has(schema)) registry.add(schema, { id })
    return { $ref: uriOf(registry.get(schema)?.id ?? id) }
  }
}

export const titleOf = (operation: string): string => `${operation.charAt(0).toUpperCase()}${operation.slice(1)}`

export const uriOf = (id: string): string => `#/components/schemas/${id}`

/** What a parameter says of itself: the description apart. */
export function describedBy(type: z.ZodType): { description: unknown; schema: Json } {
  const { description, ...schema } = schemaOf(type, 'input')
  return { description, schema }
}

export function schemaOf(type: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...schema } = z.toJSONSchema(type, { override: ({ jsonSchema }) => trim(jsonSchema, io) })
  return schema
}

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

/** Drops what says nothing: bounds of what a number can hold, any key, any value. A reader of answers must bear keys that come later. */
function trim(node: z.core.JSONSchema.JSONSchema, io: 'input' | 'output'): void {
  if (node.format === 'starts_with') delete node.format
  if (isOnly(node.additionalProperties, {})) delete node.additionalProperties
  if (isOnly(node.propertyNames, { type: 'string' })) delete node.propertyNames
  if (node.minimum === Number.MIN_SAFE_INTEGER) delete node.minimum
  if (node.maximum === Number.MAX_SAFE_INTEGER) delete node.maximum
  if (io === 'output' && node.additionalProperties === false) delete node.additionalProperties
}

const isOnly = (schema: unknown, known: object): boolean => JSON.stringify(schema) === JSON.stringify(known)
