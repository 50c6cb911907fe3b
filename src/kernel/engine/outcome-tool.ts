/**
 * The function that a model is made to call, as strict mode wants it: every member is named, null is none, and what may have
 * any shape travels as the text of its JSON. `outcome.ts` says what is really taken. Contract: kernel-1.md 14.3
 */

type Schema = Record<string, unknown>

const string = (description?: string): Schema => ({ type: 'string', ...(description && { description }) })
const oneOf = (...values: string[]): Schema => ({ type: 'string', enum: values })
const list = (items: Schema): Schema => ({ type: 'array', items })
const record = (properties: Record<string, Schema>): Schema => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})
const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] })
const integer = { type: 'integer' }
const json = (what: string): Schema => string(`${what}, as JSON text`)

const evidenceRefs = orNull(list(string()))
const budget = orNull(
  record({
    maxAttempts: orNull(integer),
    maxTurns: orNull(integer),
    maxInputTokens: orNull(integer),
    maxOutputTokens: orNull(integer),
    maxTotalTokens: orNull(integer),
    maxCostMicros: orNull(integer),
    maxDurationMs: orNull(integer),
    maxActions: orNull(integer),
  }),
)

const action = record({
  bindingId: string('As offered'),
  action: string('As offered'),
  arguments: json('An object as the inputSchema of the action wants it'),
  summary: string('What it does and why, for who has to approve it'),
  evidenceRefs,
  idempotencyKey: orNull(string()),
})

const fork = record({
  join: oneOf('all', 'any', 'quorum'),
  quorum: orNull(integer),
  failure: oneOf('fail_fast', 'wait'),
  children: list(
    record({
      key: string('Its name among the children'),
      goal: string(),
      assignedAgentId: orNull(string()),
      entrypoint: orNull(string()),
      context: orNull(json('An object')),
      budget,
    }),
  ),
})

const delegation = record({
  kind: oneOf('request', 'handoff'),
  recipient: record({ type: oneOf('agent', 'team'), id: string() }),
  goal: string(),
  instructions: orNull(string()),
  semanticRole: orNull(string()),
  assignedAgentId: orNull(string()),
  acceptanceCriteria: orNull(json('A list or an object')),
  artifactRequirements: orNull(
    list(
      record({ name: string(), type: orNull(string()), description: orNull(string()), required: { type: 'boolean' } }),
    ),
  ),
  sharedContext: orNull(json('An object')),
  budgetAllocation: budget,
})

export const OUTCOME_TOOL = {
  type: 'function',
  function: {
    name: 'submit_agent_turn',
    description: 'Ends this turn: says what was decided, and at most one thing that is to be done.',
    strict: true,
    parameters: record({
      invocationId: string('The invocationId of the turn'),
      status: {
        ...oneOf('running', 'sleeping', 'waiting_for_event', 'completed', 'failed'),
        description: 'running takes another turn; sleeping and waiting_for_event need a wakeCondition',
      },
      summary: string('What this turn did, in one or two sentences'),
      decisions: list(record({ summary: string(), evidenceRefs })),
      skillDispositions: list(
        record({ skillRef: string(), disposition: oneOf('applied', 'not_applied'), summary: string() }),
      ),
      checkpoint: orNull(json('An object that the next turn sees in place of the checkpoint')),
      plan: orNull(json('The plan from now on: an object or a list')),
      output: orNull(json('The result of the run, when it is completed')),
      error: orNull(record({ code: string(), message: string() })),
      wakeCondition: orNull(
        record({
          type: oneOf('timer', 'event'),
          wakeAt: orNull(string('RFC 3339; required for a timer')),
          reference: orNull(string()),
          predicate: orNull(json('An object: what the event must hold')),
        }),
      ),
      action: orNull(action),
      fork: orNull(fork),
      delegation: orNull(delegation),
      runbookCall: orNull(record({ entrypoint: string(), input: json('An object') })),
    }),
  },
}
