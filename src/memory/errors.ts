import { CodedError } from '../base/errors.ts'

/** Every error the memory service answers with, and its HTTP status. Contract: memory.md 2.4. */
export const MEMORY_ERRORS = {
  invalid_input: 400,
  patch_anchor_not_found: 400,
  graph_traverse_depth_exceeded: 400,
  missing_agent_id: 400,
  unauthorized: 401,
  agent_verification_failed: 401,
  not_found: 404,
  method_not_allowed: 405,
  already_exists: 409,
  already_linked_via_synthetic: 409,
  cannot_unlink_synthetic_edge: 409,
  not_empty: 409,
  cas_conflict: 412,
  quota_exceeded: 429,
  internal_error: 500,
  capability_unavailable: 501,
} as const

export type MemoryErrorCode = keyof typeof MEMORY_ERRORS

/**
 * A refusal of the memory service; `details` as listed beside the code in memory.md 2.4. What a client sent is told back in
 * part only, so that an answer does not grow with its request.
 */
export class MemoryError extends CodedError<MemoryErrorCode> {
  constructor(code: MemoryErrorCode, message: string, details: Record<string, unknown> = {}) {
    const shown = Object.entries(details).map(([key, value]) => [
      key,
      typeof value === 'string' ? shorten(value) : value,
    ])
    super(code, shorten(message), Object.fromEntries(shown))
  }
}

const SHOWN = 1000
const HALF_PAIR = /[\ud800-\udbff]$/
const shorten = (text: string): string =>
  text.length > SHOWN ? `${text.slice(0, SHOWN).replace(HALF_PAIR, '')}…` : text

/** A 400 that names the field at fault. */
export const invalidInput = (message: string, field?: string): MemoryError =>
  new MemoryError('invalid_input', message, field === undefined ? {} : { field })

/** A 404 that names what is absent. */
export const notFound = (resource: string, id: string): MemoryError =>
  new MemoryError('not_found', `${resource} ${id} does not exist`, { resource, id })
