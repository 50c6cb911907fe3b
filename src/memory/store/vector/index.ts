import { pgvector } from './pgvector.ts'
import { vectorRows } from './rows.ts'
import type { VectorStore } from './vector-store.ts'

export type VectorDriver = 'sqlite' | 'postgres' | 'pgvector'

/** How a driver keeps vectors. Contract: memory.md 9.1. */
export const vectorStore = (driver: VectorDriver): VectorStore => (driver === 'pgvector' ? pgvector : vectorRows)
