import type { Direction, EdgeType, LinkType } from '../client/graph-types.ts'
import type { LedgerQuery, RecallMode } from '../client/types.ts'

/** What the flags accept, for help, completion and an early word; the rules are the server's. */
export const MODES = ['hybrid', 'keyword', 'vector', 'lookup'] as const satisfies readonly RecallMode[]
export const DIRECTIONS = ['out', 'in', 'both'] as const satisfies readonly Direction[]
export const ORDERS = ['desc', 'asc'] as const satisfies readonly LedgerQuery['order'][]
export const LINK_TYPES = [
  'parent_of',
  'derived_from',
  'supersedes',
  'references',
  'session_of',
  'mentions',
] as const satisfies readonly LinkType[]
export const EDGE_TYPES = [...LINK_TYPES, 'vector_neighbor'] as const satisfies readonly EdgeType[]
