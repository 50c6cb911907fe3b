import { KernelError } from '../../kernel/errors.ts'
import { DECISIONS } from '../../kernel/model/action.ts'
import type { Recorded } from '../../kernel/model/fields.ts'
import type { Objective } from '../../kernel/model/objective.ts'
import { RUN_COMMANDS } from '../../kernel/model/run.ts'
import { objectives } from '../../kernel/store/objectives.ts'
import { readRecord, type Family } from '../../kernel/store/records.ts'
import { runs } from '../../kernel/store/runs.ts'
import { invalidInput } from '../../memory/errors.ts'
import type { ActionRequest, Done } from '../actions/action.ts'
import { CONSOLE_ACTOR, kernelPaths, partyOf, scopeOf, send, type KernelConsole } from './kernel.ts'

/** What an operator does to the kernel, by the rules of its routes. */

export type KernelAction = (console: KernelConsole, request: ActionRequest) => Promise<Done>

const createRun: KernelAction = async (console, request) => {
  const { form } = request
  const maxTurns = form.number('max_turns')
  await send(
    console,
    request,
    'POST /agent-runs',
    {},
    {
      goal: form.require('goal'),
      owner: { type: 'agent', id: form.require('agent_id') },
      objectiveId: form.text('objective_id'),
      ...(maxTurns !== undefined && { budget: { maxTurns } }),
    },
  )
  return { to: kernelPaths.runs(form.require('scope')), note: 'The run is queued.' }
}

const commandRun: KernelAction = async (console, request) => {
  const { form } = request
  const id = form.require('run_id')
  const kind = RUN_COMMANDS.find((command) => command === form.text('kind'))
  if (!kind) throw invalidInput('kind must be pause, resume, cancel or intervene', 'kind')
  const question = form.text('human_intervention_id')
  const [dimension, amount] = [form.text('top_up_dimension'), form.number('top_up')]
  await sendToMoving(console, request, 'POST /agent-runs/{id}/commands', runs, id, () => ({
    kind,
    instruction: form.text('instruction'),
    ...(question !== undefined && {
      humanInterventionId: question,
      resolution: { outcome: form.text('outcome'), note: form.text('note') },
    }),
    ...(dimension !== undefined && amount !== undefined && { budgetTopUp: { [dimension]: amount } }),
  }))
  return { to: kernelPaths.run(form.require('scope'), id), note: DONE[kind] }
}

const ATTEMPTS = 5

/** What it is about has moved on by the time that a person has read its page: what they want of it holds for what it is now. */
async function sendToMoving<T extends Recorded>(
  console: KernelConsole,
  request: ActionRequest,
  route: Parameters<typeof send>[2],
  family: Family<T>,
  id: string,
  bodyOf: (record: T) => object,
): Promise<void> {
  const { form } = request
  const scope = scopeOf(console, form.require('scope'))
  const { database } = console.kernel.context.store
  let record = await readRecord(database, family, scope, id)
  let expectedRevision = form.number('expected_revision')
  for (let attempt = 1; ; attempt++) {
    try {
      return await send(console, request, route, { id }, { ...bodyOf(record), expectedRevision })
    } catch (error) {
      if (!(error instanceof KernelError) || error.code !== 'conflict' || attempt === ATTEMPTS) throw error
      record = await readRecord(database, family, scope, id)
      if (expectedRevision === undefined || record.revision <= expectedRevision) throw error
      expectedRevision = record.revision
    }
  }
}

const DONE = {
  pause: 'The run is paused.',
  resume: 'The run goes on.',
  cancel: 'The run is canceled.',
  intervene: 'The next turn will see it.',
} as const

const createObjective: KernelAction = async (console, request) => {
  const { form } = request
  const maxTurns = form.number('max_turns')
  await send(
    console,
    request,
    'POST /objectives',
    {},
    {
      title: form.require('title'),
      goal: form.require('goal'),
      owner: partyOf(form, 'owner'),
      status: form.require('status'),
      priority: form.number('priority'),
      ...(maxTurns !== undefined && { budget: { maxTurns } }),
    },
  )
  return { to: kernelPaths.objectives(form.require('scope')), note: 'The objective is there.' }
}

const moveObjective: KernelAction = async (console, request) => {
  const { form } = request
  const [id, status] = [form.require('objective_id'), form.require('status')]
  await sendToMoving(console, request, 'PUT /objectives/{id}', objectives, id, (objective) => ({
    ...contentOf(objective),
    status,
  }))
  return { to: kernelPaths.objective(form.require('scope'), id), note: `The objective is ${status}.` }
}

/** All that a PUT replaces. */
function contentOf(objective: Objective): object {
  const { title, goal, priority, executionPolicy, budget, constraints, successCriteria, progressSummary } = objective
  return { title, goal, priority, executionPolicy, budget, constraints, successCriteria, progressSummary }
}

const decideApproval: KernelAction = async (console, request) => {
  const { form } = request
  const decision = DECISIONS.find((one) => one === form.text('decision'))
  if (!decision) throw invalidInput('decision must be approve, reject or request_changes', 'decision')
  await send(
    console,
    request,
    'POST /action-approvals/{id}/decisions',
    { id: form.require('approval_id') },
    {
      decision,
      expectedRevision: form.number('expected_revision'),
      principal: partyOf(form, 'principal'),
      reason: form.text('reason'),
    },
  )
  const back = form.text('back') === 'run' ? kernelPaths.run(form.require('scope'), form.require('run_id')) : undefined
  return { to: back ?? kernelPaths.approvals(form.require('scope')), note: DECIDED[decision] }
}

const DECIDED = {
  approve: 'Approved: it will be done now.',
  reject: 'Rejected: the agent is told.',
  request_changes: 'The agent is told what to change.',
} as const

const rollBack: KernelAction = async (console, request) => {
  const { form } = request
  const id = form.require('deployment_id')
  await send(
    console,
    request,
    'POST /agent-deployments/{id}/rollbacks',
    { id },
    {
      expectedRevision: form.number('expected_revision'),
      actorType: CONSOLE_ACTOR.type,
      actorId: CONSOLE_ACTOR.id,
      reason: form.text('reason') ?? 'rolled back in the console',
    },
  )
  return { to: kernelPaths.deployments(form.require('scope')), note: `${id} is back on its version before.` }
}

export const kernelActions: Readonly<Record<string, KernelAction>> = {
  'kernel/runs/create': createRun,
  'kernel/runs/command': commandRun,
  'kernel/objectives/create': createObjective,
  'kernel/objectives/move': moveObjective,
  'kernel/approvals/decide': decideApproval,
  'kernel/deployments/roll-back': rollBack,
}
