import * as z from 'zod'
import type { MemoryErrorCode } from '../errors.ts'
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
  /** What the summary leaves open: an effect, a limit, an order. */
  description?: string
  /** What it answers with; absent with 204. */
  answer?: z.ZodType
  query?: Readonly<Record<string, z.ZodType>>
  /** A body that works once the ids in it are real. */
  example?: Readonly<Record<string, unknown>>
  /** What it refuses with beside what the pipeline does for every route. */
  errors?: readonly MemoryErrorCode[]
}

/** The parts of the API, in reading order. */
export const TAGS = {
  workspaces: 'Each keeps its Memories, graph, agents and ledger apart from all others.',
  collections: 'Groups of Memories that belong together, such as one conversation; recall can be limited to one.',
  memories: 'Texts with tags and versions. Every change names the version it builds on.',
  recall: 'Finds Memories by their words and by their meaning; pins keep a query.',
  edges: 'Edges between Memories, many at once, and their removal.',
  graph: 'Walks along Edges.',
  agents: 'Who writes. An agent registers itself with its first write.',
  ledger: 'Every change, chained by hashes.',
  operation: 'Whether the server lives and its stores answer.',
} as const

const page = (standard: number, maximum: number) => ({
  limit: z.int().describe(`Rows at most: ${standard} when absent, ${maximum} when above`),
  cursor: z.string().describe('`next_cursor` of the page before'),
})
const list = (what: string) => z.string().describe(`${what}, commas between`)
const time = (what: string) => z.string().describe(`${what}: ISO 8601, inclusive`)

const LIMITS = 'Refused with 429 beyond the limits of the configuration.'
const CAS =
  'The watermark that the change builds on is required, in the body or as `If-Match`; 412 when it is not the head.'
const WORKSPACE = { name: 'Lighthouse', region: 'eu', auto_link_enabled: true }
const EDGE = {
  target_memory_id: 'mem_01KAJ3V5S0Q8T7R6P5N4M3K2J2',
  edge_type: 'references',
  properties_json: { reason: 'same lamp' },
}
const MEMORY_ID = 'mem_01KAJ3V5S0Q8T7R6P5N4M3K2J1'
const WATERMARK = 'wmk_01KAJ3V5S0Q8T7R6P5N4M3K2J3'

/** Every route's documentation, by its name. Contract: memory.md 3. */
export const OPERATIONS = {
  createWorkspace: {
    summary: 'Make a workspace',
    description: LIMITS,
    answer: workspaceSchema,
    example: WORKSPACE,
    errors: ['quota_exceeded'],
  },
  listWorkspaces: { summary: 'List workspaces, the newest first', query: page(100, 200), answer: workspacesAnswer },
  getWorkspace: { summary: 'Show a workspace', answer: workspaceSchema },
  updateWorkspace: {
    summary: 'Replace a workspace',
    description: 'What is absent is cleared; `auto_link_*` keys and `created_at` are kept.',
    answer: workspaceSchema,
    example: WORKSPACE,
  },
  deleteWorkspace: {
    summary: 'Delete a workspace without Memories',
    description: 'Collections, pins and agents go with it; its ledger stays.',
    errors: ['not_empty'],
  },
  listCollections: { summary: 'List collections by name', query: page(100, 1000), answer: collectionsAnswer },
  createCollection: {
    summary: 'Make a collection',
    description: 'Its name is unique in the workspace.',
    answer: collectionSchema,
    example: { name: 'Logbook' },
    errors: ['already_exists'],
  },
  getCollection: { summary: 'Show a collection', answer: collectionSchema },
  deleteCollection: { summary: 'Delete a collection without Memories', errors: ['not_empty'] },

  imprint: {
    summary: 'Remember a text',
    description: `The text is cut into Cells, which are found by words at once and by meaning when \`recall_ready\` is true. ${LIMITS}`,
    answer: imprintAnswer,
    example: { content: 'The lamp is lit at dusk.', tags: { kind: 'rule' } },
    errors: ['quota_exceeded'],
  },
  listMemories: {
    summary: 'List Memories, the newest first',
    description: 'A page ends early where its contents are longer than 64 MiB together.',
    query: {
      collection_id: z.string().describe('Only those of this collection'),
      include_content: z.boolean().describe('`false` leaves `content` out'),
      ...page(50, 1000),
    },
    answer: memoriesAnswer,
  },
  lookup: { summary: 'Show a Memory with its Cells', answer: memoryWithCellsSchema },
  update: {
    summary: 'Replace the content, if the watermark is still the head',
    description: `${CAS} Absent \`tags\` stay, present ones replace all.`,
    answer: updateAnswer,
    example: { content: 'The lamp is lit an hour before dusk.', expected_watermark: WATERMARK },
    errors: ['cas_conflict'],
  },
  patch: {
    summary: 'Replace strings in the content, if the watermark is still the head',
    description: `${CAS} All operations apply or none; each \`old_string\` occurs once, unless \`replace_all\` is true.`,
    answer: patchAnswer,
    example: { patch: [{ old_string: 'at dusk', new_string: 'at nightfall' }], expected_watermark: WATERMARK },
    errors: ['patch_anchor_not_found', 'cas_conflict'],
  },
  append: {
    summary: 'Add to the end of the content',
    description:
      'Joined without a separator. No append of two at once is lost; a watermark is checked when it is given.',
    answer: appendAnswer,
    example: { content: ' It is put out at dawn.' },
    errors: ['cas_conflict'],
  },
  forget: {
    summary: 'Erase a Memory',
    description: 'Its text, versions, tags, Cells, vectors and Edges are gone from storage. This cannot be undone.',
    query: { redact_audit: z.boolean().describe('Erase what the ledger says about it, too') },
    answer: forgetAnswer,
    errors: ['cas_conflict'],
  },
  lookupAt: { summary: 'Show a Memory as it was under a watermark', answer: pastMemorySchema },
  watermarkHistory: {
    summary: 'List the versions of a Memory, the newest first',
    description: 'Those of the last seven days.',
    query: page(1000, 1000),
    answer: watermarksAnswer,
  },
  setTag: { summary: 'Set a tag', description: 'The watermark stays.', example: { value: 'rule' } },
  postTag: { summary: 'Set a tag, as PUT does', example: { value: 'rule' } },
  deleteTag: { summary: 'Delete a tag', description: 'Deleting one that is not there is no error.' },

  listEdges: {
    summary: 'List the Edges of a Memory, the newest first',
    query: {
      direction: directionSchema.describe('`both` when absent'),
      type: list('Edge types'),
      ...page(100, 200),
    },
    answer: edgesAnswer,
  },
  link: {
    summary: 'Join two Memories by an Edge',
    description: LIMITS,
    answer: linkAnswer,
    example: EDGE,
    errors: ['already_exists', 'already_linked_via_synthetic', 'quota_exceeded'],
  },
  linkBatch: {
    summary: 'Make many Edges; each row succeeds or fails alone',
    description: 'Too many rows are refused with 429, and none is written.',
    answer: batchAnswer,
    example: { edges: [{ source_memory_id: MEMORY_ID, ...EDGE }] },
    errors: ['quota_exceeded'],
  },
  unlink: {
    summary: 'Remove an Edge',
    description: 'Not one that auto-link made.',
    errors: ['cannot_unlink_synthetic_edge'],
  },
  neighbors: {
    summary: 'List what a Memory is linked with',
    answer: neighborsAnswer,
    example: { memory_id: MEMORY_ID, direction: 'both', k: 20 },
  },
  traverse: {
    summary: 'Walk along Edges, layer by layer',
    answer: traverseAnswer,
    example: { seed_memory_id: MEMORY_ID, depth: 2 },
    errors: ['graph_traverse_depth_exceeded'],
  },
  graphStats: { summary: 'Count live Memories and Edges', answer: statsAnswer },

  recall: {
    summary: 'Find Memories by what they say',
    description:
      'Each Memory appears once, the best first. When the query cannot be embedded, the hits by words come with a warning.',
    answer: recallAnswerSchema,
    example: { query: 'When is the lamp lit?', k: 5 },
    errors: ['graph_traverse_depth_exceeded'],
  },
  listPins: { summary: 'List kept queries, the newest first', query: page(100, 1000), answer: pinsAnswer },
  createPin: { summary: 'Keep a query', answer: pinAnswer, example: { query: 'When is the lamp lit?', label: 'Lamp' } },
  deletePin: { summary: 'Delete a kept query' },

  listAgents: { summary: 'List agents, the newest first', query: page(100, 1000), answer: agentsAnswer },
  getAgent: { summary: 'Show an agent', answer: agentSchema },
  registerAgent: {
    summary: 'Register an agent, or change its profile',
    description: 'One that is known gets the new profile and becomes active.',
    answer: agentSchema,
    example: { agent_id: 'agent_keeper', identity_provider: 'opaque', display_name: 'Keeper' },
    errors: ['already_exists'],
  },
  deactivateAgent: { summary: 'Deactivate an agent', description: 'Its Memories stay.' },

  ledgerQuery: {
    summary: 'Read the audit ledger',
    description: '501 where the ledger is kept in a store that cannot be queried.',
    query: {
      since: time('Not before'),
      until: time('Not after'),
      actor: z.string().describe('`api_key_id` or `user_id`'),
      agent_id: z.string().describe('Of this agent'),
      memory_id: z.string().describe('About this Memory'),
      edge_id: z.string().describe('About this Edge'),
      op: list('Operations'),
      since_ledger_id: z.string().describe('Go on behind this entry; `cursor` is another name'),
      order: z.enum(['desc', 'asc']).describe('`desc` when absent'),
      ...page(100, 1000),
    },
    answer: entriesAnswer,
    errors: ['capability_unavailable'],
  },
} as const satisfies Readonly<Record<string, Operation>>

export type OperationName = keyof typeof OPERATIONS
