import { expect } from 'vitest'
import { recallAnswerSchema, type RecallAnswer, type RecallHit } from '../../src/memory/model.ts'
import { expectInvalid } from './expectations.ts'
import type { MemoryApi } from './memory-api.ts'

/** The modes that search. */
export const MODES = ['keyword', 'vector', 'hybrid'] as const

/** Ways to ask a server for a recall. */
export function recaller(api: () => MemoryApi) {
  const call = (ws: string, request: object) => api().call('POST', `/workspaces/${ws}/recall`, request, { agent: null })
  /** One that must succeed, in the shape of memory.md 4.3. */
  const recall = async (ws: string, request: object): Promise<RecallAnswer> => {
    const { status, body } = await call(ws, request)
    expect({ status, body }).toMatchObject({ status: 200 })
    expect(body.latency_ms).toBeGreaterThan(0)
    return recallAnswerSchema.parse(body)
  }
  const hits = async (ws: string, request: object): Promise<RecallHit[]> => (await recall(ws, request)).results
  return {
    recall,
    hits,
    ids: async (ws: string, request: object): Promise<string[]> =>
      (await hits(ws, request)).map((hit) => hit.memory_id),
    /** One that must be 400 for this field. */
    refused: async (ws: string, request: object, field: string): Promise<void> =>
      expectInvalid(await call(ws, request), field),
  }
}

/** Score descending, then memory_id ascending. */
export const isOrdered = (results: readonly RecallHit[]): boolean =>
  results.every((hit, i) => {
    const next = results[i + 1]
    return !next || hit.score > next.score || (hit.score === next.score && hit.memory_id < next.memory_id)
  })
