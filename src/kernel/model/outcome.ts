import * as z from 'zod'
import { isTooDeep } from '../../base/json-depth.ts'
import { budgetPolicy } from './budget.ts'
import type { Envelope } from './envelope.ts'
import { evidenceRefs, free, freeSecretFree, id, object, party, prose, secretFree, text, time } from './fields.ts'
import { createRequest } from './request.ts'

/** What a model may answer. Contract: kernel-1.md 14.3. */

/** Models that must name every member say null for none. */
const dropNulls = (value: unknown): unknown =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).filter(([, item]) => item !== null))
    : value

/** Objects and lists of any shape come as they are, or as the text of their JSON. */
function parseJson(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[{[]/.test(value)) return value
  try {
    const parsed: unknown = JSON.parse(value)
    return isTooDeep(parsed) ? value : parsed
  } catch {
    return value
  }
}

const strict = <S extends z.ZodRawShape>(shape: S) => z.preprocess(dropNulls, z.strictObject(shape))
const json = <T extends z.ZodType>(schema: T) => z.preprocess(parseJson, schema)

const wake = strict({
  type: z.enum(['timer', 'event']),
  wakeAt: time.exactOptional(),
  reference: text(512).exactOptional(),
  predicate: json(object).exactOptional(),
}).refine(({ type, wakeAt }) => type !== 'timer' || wakeAt !== undefined, {
  path: ['wakeAt'],
  message: 'is required for a timer',
})

const action = strict({
  bindingId: id,
  action: text(128),
  arguments: json(object),
  summary: prose,
  evidenceRefs: evidenceRefs.default([]),
  idempotencyKey: text(256).exactOptional(),
})

const child = strict({
  key: text(128),
  goal: prose,
  assignedAgentId: id.exactOptional(),
  entrypoint: text(256).exactOptional(),
  context: json(secretFree).exactOptional(),
  budget: z.preprocess(dropNulls, budgetPolicy).exactOptional(),
})

const fork = strict({
  join: z.enum(['all', 'any', 'quorum']),
  quorum: z.int().min(1).exactOptional(),
  failure: z.enum(['fail_fast', 'wait']),
  children: z.array(child).min(1).max(32),
}).superRefine(({ join, quorum, children }, ctx) => {
  const issue = (at: string, message: string): void => ctx.addIssue({ code: 'custom', path: [at], message })
  if (new Set(children.map(({ key }) => key)).size < children.length) issue('children', 'must have different keys')
  if ((join === 'quorum') !== (quorum !== undefined)) issue('quorum', 'goes with join quorum, and with no other')
  if ((quorum ?? 0) > children.length) issue('quorum', 'is more than there are children')
})

const delegation = strict({
  kind: z.enum(['request', 'handoff']),
  recipient: z.preprocess(dropNulls, party),
  goal: prose,
  instructions: prose.exactOptional(),
  semanticRole: text(128).exactOptional(),
  assignedAgentId: id.exactOptional(),
  acceptanceCriteria: json(free).exactOptional(),
  artifactRequirements: createRequest.shape.artifactRequirements,
  sharedContext: json(freeSecretFree).exactOptional(),
  budgetAllocation: z.preprocess(dropNulls, budgetPolicy).exactOptional(),
})

const PROPOSALS = ['action', 'fork', 'delegation', 'runbookCall'] as const

const outcomeSchema = strict({
  invocationId: z.string(),
  status: z.enum(['running', 'sleeping', 'waiting_for_event', 'completed', 'failed']).default('running'),
  summary: prose,
  decisions: z
    .array(strict({ summary: prose, evidenceRefs: evidenceRefs.default([]) }))
    .max(100)
    .default([]),
  skillDispositions: z
    .array(strict({ skillRef: text(512), disposition: z.enum(['applied', 'not_applied']), summary: prose }))
    .max(100)
    .default([]),
  checkpoint: json(object).exactOptional(),
  plan: json(freeSecretFree).exactOptional(),
  output: json(z.unknown()).optional(),
  error: strict({ code: text(128), message: prose }).exactOptional(),
  wakeCondition: wake.exactOptional(),
  action: action.exactOptional(),
  fork: fork.exactOptional(),
  delegation: delegation.exactOptional(),
  runbookCall: strict({ entrypoint: text(256), input: json(object).default({}) }).exactOptional(),
}).superRefine((outcome, ctx) => {
  const issue = (path: string, message: string): void => ctx.addIssue({ code: 'custom', path: [path], message })
  const waits = outcome.status === 'sleeping' || outcome.status === 'waiting_for_event'
  if (waits !== (outcome.wakeCondition !== undefined))
    issue('wakeCondition', `${waits ? 'is required' : 'is not allowed'} with status ${outcome.status}`)
  const proposals = PROPOSALS.filter((name) => outcome[name] !== undefined)
  if (proposals.length > 1) issue(proposals[1] ?? '', `is one proposal too many beside ${proposals[0]}`)
  if (proposals[0] && outcome.status !== 'running') issue(proposals[0], `needs status running, not ${outcome.status}`)
})
export type Outcome = z.infer<typeof outcomeSchema>

/** What of a run a model was shown: gone from the run when the turn is applied. */
export interface Shown {
  guidance: string[]
  results: string[]
}

/** What a turn keeps until it is applied: after a crash nothing else is needed. */
export interface StoredOutcome {
  outcome: Outcome
  shown: Shown
}

const MAX_ERRORS = 20

/** The outcome that a model proposed, or what is wrong with it, in words that the model is shown. */
export function readOutcome(answer: unknown, envelope: Envelope): { outcome: Outcome } | { errors: string[] } {
  const read = outcomeSchema.safeParse(answer)
  if (!read.success) {
    const { issues } = read.error
    return {
      errors: issues.slice(0, MAX_ERRORS).map(({ path, message }) => `${path.join('.') || 'outcome'}: ${message}`),
    }
  }
  const outcome = read.data
  const errors: string[] = []
  if (outcome.invocationId !== envelope.invocationId) errors.push(`invocationId: must be ${envelope.invocationId}`)
  const disposed = new Set(outcome.skillDispositions.map(({ skillRef }) => skillRef))
  for (const { skillRef } of envelope.skills)
    if (!disposed.has(skillRef)) errors.push(`skillDispositions: ${skillRef} is missing`)
  return errors.length > 0 ? { errors } : { outcome }
}
