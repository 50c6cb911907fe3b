import type { NodeExecutor } from '../../registry.ts'
import { EMBEDDING } from '../embedding-attributes.ts'

/** Vectors in PostgreSQL, or Memories of our memory service. Contract: runbook.md 6.6. */
export const vectordbNode: NodeExecutor = {
  type: 'vectordb',
  effects: 'external',
  timeoutMs: 60_000,
  inputSchema: {
    type: 'object',
    properties: {
      provider: { type: 'string', enum: ['pgvector', 'mem'], default: 'pgvector', evaluation: 'constant' },
      operation: {
        type: 'string',
        enum: ['search', 'insert', 'upsert', 'delete'],
        default: 'search',
        evaluation: 'constant',
      },
      connectionString: { type: 'string', minLength: 1, sensitive: true, description: 'Required for pgvector' },
      table: { type: 'string', minLength: 1, description: 'Required for pgvector; may name a schema' },
      vectorColumn: { type: 'string', default: 'embedding' },
      textColumn: { type: 'string', default: 'content' },
      selectColumns: {
        type: ['string', 'array'],
        items: { type: 'string' },
        description: 'All but vectors when absent',
      },
      conflictColumn: { type: 'string', default: 'id' },
      query: { type: 'string', minLength: 1, description: 'Search text; or give vector' },
      text: { type: 'string', minLength: 1, description: 'Another name of query' },
      vector: { type: 'array', items: { type: 'number' }, minItems: 1 },
      filter: { type: 'object', description: 'Column to value, list of values, or null' },
      topK: { type: 'integer', minimum: 1, maximum: 1000, default: 10 },
      distanceMetric: { type: 'string', enum: ['cosine', 'l2', 'inner_product'], default: 'cosine' },
      vectorColumns: {
        type: 'array',
        items: { type: 'string' },
        minItems: 1,
        description: 'Search over several columns',
      },
      aggregationMethod: { type: 'string', enum: ['minimum', 'maximum', 'weighted'], default: 'minimum' },
      weights: { type: 'array', items: { type: 'number', minimum: 0 } },
      data: { type: ['object', 'array'], items: { type: 'object' }, description: 'A row, or rows' },
      vectorConfigs: {
        type: 'array',
        items: {
          type: 'object',
          properties: { column: { type: 'string' }, textTemplate: { type: 'string' } },
          required: ['column', 'textTemplate'],
        },
        description: 'What is embedded for each vector column; {{column}} stands for a value of the row',
      },
      enableChunking: { type: 'boolean', default: false },
      chunkSize: { type: 'integer', minimum: 1, default: 1000 },
      chunkOverlap: { type: 'integer', minimum: 0, default: 100 },
      deleteFilter: { type: 'object', description: 'Required for delete' },
      ...EMBEDDING,
      workspace: { type: 'string', minLength: 1, description: 'Required for mem' },
      collection: { type: 'string' },
      endpoint: { type: 'string', format: 'url' },
      apiKey: { type: 'string', sensitive: true },
      agentId: { type: 'string' },
      mode: { type: 'string', enum: ['hybrid', 'vector', 'keyword'] },
      memoryId: { type: 'string' },
      tags: { type: 'object' },
    },
  },
  // drivers load with the first use
  execute: async (context) =>
    context.config.provider === 'mem'
      ? (await import('./memory.ts')).useMemory(context)
      : (await import('./pgvector.ts')).usePgvector(context),
}
