import { canonicalJson } from '../../base/canonical-json.ts'
import { clip } from '../../base/clip.ts'
import { sha256 } from '../../base/hash.ts'
import type { KernelContext } from '../context.ts'
import type { ActionCall, ActionProposal } from '../model/action.ts'
import type { PolicyDecision } from '../model/policy.ts'
import type { Run } from '../model/run.ts'
import type { SkillAction } from '../model/skill.ts'
import { evaluatePolicy } from '../policy.ts'
import type { ProposedAction } from '../ports.ts'
import { fillArguments } from './arguments.ts'
import { resolveAction, type Agent, type ResolvedAction } from './resolve.ts'
import { schemaMismatch } from './schema.ts'

/** What a turn proposes, judged before the transaction that records it. Contract: kernel-1.md 13, 14.1 */

/** Of the call: what is known before it is recorded. */
export type PlannedCall = Pick<
  ActionCall,
  | 'deploymentId'
  | 'bindingId'
  | 'bindingRevision'
  | 'skillId'
  | 'skillVersion'
  | 'action'
  | 'risk'
  | 'sideEffect'
  | 'arguments'
  | 'resolvedArguments'
  | 'credentialRefs'
  | 'evidenceRefs'
  | 'invocationDigest'
  | 'semanticDigest'
  | 'externalOperationDigest'
  | 'maxAttempts'
> & { idempotencyKey?: string }

export type PreparedAction =
  /** Not a call at all: told to the model. */
  | { kind: 'refused'; name: string; digest: string; reason: string }
  | { kind: 'judged'; name: string; summary: string; call: PlannedCall; decision: PolicyDecision }

/** It travels in a header. */
const KEY = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/

const MAX_SUMMARY = 1024

export const actionName = (skillId: string, action: string): string => `${skillId}.${action}`

/**
 * Resolves and judges what a turn of a run proposes: binding, runtime arguments, JSON Schema, the layers of the policy.
 * It asks others, so it stands before the transaction; `recordAction` stands in it.
 */
export async function prepareAction(
  context: KernelContext,
  run: Run,
  agent: Agent,
  proposal: ActionProposal,
): Promise<PreparedAction> {
  const { bindingId, action, arguments: given } = proposal
  const refused = (reason: string, name = `${bindingId}.${action}`, digest = digestOf({ bindingId, action, given })) =>
    ({ kind: 'refused', name, digest, reason }) as const
  if (!context.actions) return refused('no skills are configured')
  if (proposal.idempotencyKey !== undefined && !KEY.test(proposal.idempotencyKey)) {
    return refused('idempotencyKey must be 1 to 256 printable ASCII characters')
  }
  const resolved = await resolveAction(context.store.database, context.actions, run, agent, proposal)
  if (typeof resolved === 'string') return refused(resolved)
  const { binding, skill, transport, bounds } = resolved
  const filled = fillArguments(given, resolved.action, transport, binding.config)
  const call = planCall(agent, resolved, proposal, filled)
  const name = actionName(skill.id, action)
  const mismatch = schemaMismatch(resolved.action.inputSchema, filled.checked)
  if (mismatch !== undefined) return refused(`the arguments do not fit: ${mismatch}`, name, call.invocationDigest)
  const { validators, policy } = context.actions
  const decision = await evaluatePolicy(asJudged(run, agent, call), { bounds, validators, policy, log: context.log })
  return { kind: 'judged', name, summary: clip(proposal.summary, MAX_SUMMARY), call, decision }
}

/** A call as policies see it, when it is proposed and again before it is sent. */
export const asJudged = (
  run: Run,
  { deployment }: Agent,
  call: Pick<ActionCall, 'bindingId' | 'skillId' | 'action' | 'arguments' | 'risk' | 'sideEffect'>,
): ProposedAction => ({
  scope: run.scope,
  run,
  deploymentId: deployment.id,
  bindingId: call.bindingId,
  skillId: call.skillId,
  action: call.action,
  arguments: call.arguments,
  risk: call.risk,
  sideEffect: call.sideEffect,
  ...(run.budgetState && { budget: run.budgetState }),
})

function planCall(
  { deployment }: Agent,
  { binding, skill, action }: ResolvedAction,
  { evidenceRefs = [], idempotencyKey }: ActionProposal,
  { arguments: filled, resolvedArguments }: Pick<ActionCall, 'arguments' | 'resolvedArguments'>,
): PlannedCall {
  const required = new Set(action.credentials.map(({ name }) => name))
  return {
    deploymentId: deployment.id,
    bindingId: binding.id,
    bindingRevision: binding.revision,
    skillId: skill.id,
    skillVersion: skill.version,
    action: action.name,
    risk: action.risk,
    sideEffect: action.sideEffect,
    arguments: filled,
    resolvedArguments,
    credentialRefs: Object.fromEntries(Object.entries(binding.credentials).filter(([name]) => required.has(name))),
    evidenceRefs,
    invocationDigest: digestOf({
      bindingId: binding.id,
      skillId: skill.id,
      skillVersion: skill.version,
      action: action.name,
      arguments: filled,
    }),
    ...meaningOf(skill.id, action, filled),
    maxAttempts: action.retry.maxAttempts,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  }
}

/** The argument with this role names what is done in the world: done once in a scope, whoever asks. */
const OPERATION_ROLE = 'operation'

function meaningOf(
  skillId: string,
  action: SkillAction,
  filled: Record<string, unknown>,
): Pick<ActionCall, 'semanticDigest' | 'externalOperationDigest'> {
  const roles = Object.entries(action.semanticArguments).map(([role, property]) => [role, filled[property]] as const)
  if (roles.length === 0) return {}
  const operation = roles.find(([role]) => role === OPERATION_ROLE)?.[1]
  return {
    semanticDigest: digestOf({ skillId, action: action.name, roles: Object.fromEntries(roles) }),
    ...(operation !== undefined && {
      externalOperationDigest: digestOf({ skillId, action: action.name, operation }),
    }),
  }
}

const digestOf = (value: unknown): string => sha256(canonicalJson(value))
