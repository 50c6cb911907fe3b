/** A text of another memory, on its way into a workspace. */
export interface FoundMemory {
  kind: 'memory'
  /** Where it stands in the source, for messages. */
  where: string
  /** Its name in the source: the same one makes the same Memory again. */
  key: string
  content: string
  tags: Record<string, string>
  /** By name. */
  collection?: string | undefined
  chunker?: 'markdown'
  /** Its writer, where the source names one. */
  agentId?: string | undefined
  /** ms */
  createdAt?: number | undefined
  updatedAt?: number | undefined
}

/** A relation between two texts of the source. */
export interface FoundEdge {
  kind: 'edge'
  where: string
  from: string
  to: string
  properties?: Record<string, unknown>
}

/** What cannot be read, and why; the rest goes on. */
export interface FoundFault {
  kind: 'fault'
  where: string
  message: string
}

/** What an importer finds: Memories, then the Edges between them. */
export type Found = FoundMemory | FoundEdge | FoundFault

/** Bytes of a text: what one request may bring. */
export const CONTENT_MAX = 8 * 2 ** 20
export const TOO_LARGE = 'it is larger than 8 MiB'

/** A source that is not what it was said to be. */
export class SourceError extends Error {}

/** Anything with names as tags: texts as they are, lists with commas, the rest as JSON; what has no value is left out. */
export function tagsOf(values: object): Record<string, string> {
  const tags = Object.entries(values).flatMap(([key, value]: [string, unknown]) => {
    if (value === null || value === undefined) return []
    if (Array.isArray(value) && value.every((item) => typeof item !== 'object'))
      return [[key, value.join(', ')] as const]
    return [[key, typeof value === 'string' ? value : JSON.stringify(value)] as const]
  })
  return Object.fromEntries(tags)
}
