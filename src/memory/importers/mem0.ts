import * as z from 'zod'
import { parseTimestamp } from '../../base/clock.ts'
import { CodedError } from '../../base/errors.ts'
import { md5 } from '../../base/hash.ts'
import { parseWith } from '../routes/route.ts'
import { SourceError, tagsOf, type Found } from './found.ts'
import { readElements } from './json-elements.ts'

const text = z.string().nullish()
const memorySchema = z.object({
  id: text,
  memory: z.string(),
  user_id: text,
  agent_id: text,
  app_id: text,
  run_id: text,
  actor_id: text,
  role: text,
  categories: z.array(z.string()).nullish(),
  metadata: z.custom<object>((value) => typeof value === 'object').nullish(),
  created_at: text,
  updated_at: text,
})

/**
 * A list of memories as mem0 gives them, bare or under `results`. The agent becomes the writer; user, agent, app, run,
 * categories and metadata become tags. @throws SourceError when it is no such list
 */
export async function* readMem0(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Found> {
  for await (const { line, json } of readElements(bytes, 'results')) {
    const where = `line ${line}`
    try {
      yield { ...readMemory(JSON.parse(json)), where }
    } catch (error) {
      if (error instanceof SyntaxError) throw new SourceError(`${where}: it is not JSON: ${error.message}`)
      if (!(error instanceof CodedError)) throw error
      yield { kind: 'fault', where, message: error.message }
    }
  }
}

function readMemory(value: unknown): Omit<Extract<Found, { kind: 'memory' }>, 'where'> {
  const { id, memory: content, metadata, created_at, updated_at, categories, ...scope } = parseWith(memorySchema, value)
  const createdAt = timeOf(created_at)
  return {
    kind: 'memory',
    key: id ?? md5(JSON.stringify([content, scope])),
    content,
    tags: { ...tagsOf(metadata ?? {}), ...tagsOf({ ...scope, categories: categories?.length ? categories : null }) },
    agentId: scope.agent_id ?? undefined,
    createdAt,
    updatedAt: timeOf(updated_at) ?? createdAt,
  }
}

/** mem0 writes up to nine fraction digits and any offset. A time that is none is as good as absent. */
const timeOf = (value: string | null | undefined): number | undefined => parseTimestamp(value ?? '')
