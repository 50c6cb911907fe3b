import * as z from 'zod'
import { readLines } from '../export/lines.ts'
import { parseWith } from '../routes/route.ts'
import { CodedError, errorText } from '../../base/errors.ts'
import { SourceError, type Found, type FoundEdge } from './found.ts'

const entitySchema = z.object({
  type: z.literal('entity'),
  name: z.string().min(1),
  entityType: z.string(),
  observations: z.array(z.string()),
})
const relationSchema = z.object({
  type: z.literal('relation'),
  from: z.string(),
  to: z.string(),
  relationType: z.string(),
})
const lineSchema = z.discriminatedUnion('type', [entitySchema, relationSchema])

/**
 * The file of the reference memory server: an entity or a relation a line. An entity becomes a Memory of its name and type and
 * a paragraph for each observation; the relations from one to another become one Edge that lists their types.
 * @throws SourceError when the first line is neither
 */
export async function* readServerMemory(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Found> {
  const edges = new Map<string, FoundEdge & { properties: { relations: string[] } }>()
  let isKnown = false
  for await (const { number, bytes: raw } of readLines(bytes)) {
    const where = `line ${number}`
    const text = Buffer.from(raw).toString('utf8').trim()
    if (text === '') continue
    let item: z.infer<typeof lineSchema>
    try {
      item = parseWith(lineSchema, JSON.parse(text))
      isKnown = true
    } catch (error) {
      const message = error instanceof CodedError ? error.message : `it is not JSON: ${errorText(error)}`
      if (!isKnown) throw new SourceError(`${where} is no entity or relation of server-memory: ${message}`)
      yield { kind: 'fault', where, message }
      continue
    }
    if (item.type === 'entity') {
      const { name, entityType, observations } = item
      yield {
        kind: 'memory',
        where,
        key: name,
        content: [`${name} (${entityType})`, ...observations].join('\n\n'),
        tags: { entity_name: name, entity_type: entityType },
      }
    } else {
      const { from, to, relationType } = item
      const pair = JSON.stringify([from, to])
      const edge = edges.get(pair) ?? { kind: 'edge', where, from, to, properties: { relations: [] } }
      if (!edge.properties.relations.includes(relationType)) edge.properties.relations.push(relationType)
      edges.set(pair, edge)
    }
  }
  yield* edges.values()
}
