import * as z from 'zod'
import {
  agentsAnswer,
  appendAnswer,
  batchAnswer,
  collectionsAnswer,
  edgesAnswer,
  entriesAnswer,
  forgetAnswer,
  imprintAnswer,
  linkAnswer,
  memoriesAnswer,
  neighborsAnswer,
  patchAnswer,
  pinAnswer,
  pinsAnswer,
  statsAnswer,
  traverseAnswer,
  updateAnswer,
  watermarksAnswer,
  workspacesAnswer,
} from '../answers.ts'
import {
  agentSchema,
  collectionSchema,
  memoryWithCellsSchema,
  pastMemorySchema,
  recallAnswerSchema,
  workspaceSchema,
} from '../model.ts'
import { directionSchema } from '../requests.ts'

/** What a reader of the API document learns of a route beside its path, its body and its headers. */
export interface Operation {
  summary: string
  /** What it answers with; absent with 204. */
  answer?: z.ZodType
  query?: Readonly<Record<string, z.ZodType>>
}

const page = (standard: number, maximum: number) => ({
  limit: z.int().describe(`Rows at most: ${standard} when absent, ${maximum} when above`),
  cursor: z.string().describe('`next_cursor` of the page before'),
})
const list = (what: string) => z.string().describe(`${what}, commas between`)
const time = (what: string) => z.string().describe(`${what}: ISO 8601, inclusive`)

/** Every route's documentation, by its name. Contract: memory.md 3. */
export const OPERATIONS = {
  createWorkspace: { summary: 'Make a workspace', answer: workspaceSchema },
  listWorkspaces: { summary: 'List workspaces, the newest first', query: page(100, 200), answer: workspacesAnswer },
  getWorkspace: { summary: 'Show a workspace', answer: workspaceSchema },
  updateWorkspace: { summary: 'Replace a workspace', answer: workspaceSchema },
  deleteWorkspace: { summary: 'Delete a workspace without Memories' },
  listCollections: { summary: 'List collections by name', query: page(100, 1000), answer: collectionsAnswer },
  createCollection: { summary: 'Make a collection', answer: collectionSchema },
  getCollection: { summary: 'Show a collection', answer: collectionSchema },
  deleteCollection: { summary: 'Delete a collection without Memories' },

  imprint: { summary: 'Remember a text', answer: imprintAnswer },
  listMemories: {
    summary: 'List Memories, the newest first',
    query: {
      collection_id: z.string(),
      include_content: z.boolean().describe('`false` leaves `content` out'),
      ...page(50, 1000),
    },
    answer: memoriesAnswer,
  },
  lookup: { summary: 'Show a Memory with its Cells', answer: memoryWithCellsSchema },
  update: { summary: 'Replace the content, if the watermark is still the head', answer: updateAnswer },
  patch: { summary: 'Replace strings in the content, if the watermark is still the head', answer: patchAnswer },
  append: { summary: 'Add to the end of the content', answer: appendAnswer },
  forget: {
    summary: 'Erase a Memory',
    query: { redact_audit: z.boolean().describe('Erase what the ledger says about it, too') },
    answer: forgetAnswer,
  },
  lookupAt: { summary: 'Show a Memory as it was under a watermark', answer: pastMemorySchema },
  watermarkHistory: {
    summary: 'List the versions of a Memory, the newest first',
    query: page(1000, 1000),
    answer: watermarksAnswer,
  },
  setTag: { summary: 'Set a tag' },
  postTag: { summary: 'Set a tag, as PUT does' },
  deleteTag: { summary: 'Delete a tag' },

  listEdges: {
    summary: 'List the Edges of a Memory, the newest first',
    query: { direction: directionSchema, type: list('Edge types'), ...page(100, 200) },
    answer: edgesAnswer,
  },
  link: { summary: 'Join two Memories by an Edge', answer: linkAnswer },
  linkBatch: { summary: 'Make many Edges; each row succeeds or fails alone', answer: batchAnswer },
  unlink: { summary: 'Remove an Edge' },
  neighbors: { summary: 'List what a Memory is linked with', answer: neighborsAnswer },
  traverse: { summary: 'Walk along Edges, layer by layer', answer: traverseAnswer },
  graphStats: { summary: 'Count live Memories and Edges', answer: statsAnswer },

  recall: { summary: 'Find Memories by what they say', answer: recallAnswerSchema },
  listPins: { summary: 'List kept queries, the newest first', query: page(100, 1000), answer: pinsAnswer },
  createPin: { summary: 'Keep a query', answer: pinAnswer },
  deletePin: { summary: 'Delete a kept query' },

  listAgents: { summary: 'List agents, the newest first', query: page(100, 1000), answer: agentsAnswer },
  getAgent: { summary: 'Show an agent', answer: agentSchema },
  registerAgent: { summary: 'Register an agent, or change its profile', answer: agentSchema },
  deactivateAgent: { summary: 'Deactivate an agent' },

  ledgerQuery: {
    summary: 'Read the audit ledger',
    query: {
      since: time('Not before'),
      until: time('Not after'),
      actor: z.string().describe('`api_key_id` or `user_id`'),
      agent_id: z.string(),
      memory_id: z.string(),
      edge_id: z.string(),
      op: list('Operations'),
      since_ledger_id: z.string().describe('Go on behind this entry; `cursor` is another name'),
      order: z.enum(['desc', 'asc']),
      ...page(100, 1000),
    },
    answer: entriesAnswer,
  },
} as const satisfies Readonly<Record<string, Operation>>

export type OperationName = keyof typeof OPERATIONS
