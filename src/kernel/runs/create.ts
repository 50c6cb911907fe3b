import { accountOf, accountOfObjective, allocate, withBudgetState } from '../budgets.ts'
import { aboutRun, type Change } from '../change.ts'
import { conflict } from '../errors.ts'
import type { BudgetPolicy } from '../model/budget.ts'
import type { Creation } from '../model/fields.ts'
import type { Objective } from '../model/objective.ts'
import type { Run, RunFields } from '../model/run.ts'
import { isTerminal } from '../run-states.ts'
import { objectives } from '../store/objectives.ts'
import { projects } from '../store/projects.ts'
import { lockRecord, readRecord, saveRecord } from '../store/records.ts'
import { insertRun, runs, saveRun } from '../store/runs.ts'
import { executorOf, findFullQueue } from '../store/slots.ts'

/** What a client says of a run, and what only the kernel may. */
export type NewRun = Pick<RunFields, 'owner' | 'goal'> &
  Partial<RunFields> &
  Creation &
  Partial<
    Pick<Run, 'id' | 'kind' | 'source' | 'availableAt' | 'checkpoint'> & {
      /** The budget was set aside for it before, as that of a request is. */
      isAllocated: boolean
    }
  >

/**
 * Makes a run, with its budget from its parent and objective: T1.
 * @throws not_found for an absent parent, objective or project; conflict for a parent at its end, an objective that is not
 * active, a full queue of the agent, or no room in a budget; invalid without the budget that one of them asks for. Contract: kernel-1.md 6.3
 */
export async function createRun(change: Change, { parentRunId, ...fields }: NewRun): Promise<Run> {
  const { tx, scope, now } = change
  if (parentRunId === undefined) return insert(change, fields)
  const before = await lockRecord(tx, runs, scope, parentRunId)
  const { child, parent } = await createChild(change, before, fields)
  if (parent !== before) await saveRun(tx, parent, now)
  return child
}

/**
 * Makes a child of a run that the caller has locked; gives the parent with what the child got of its budget, unsaved.
 * @throws as `createRun`
 */
export async function createChild(
  change: Change,
  parent: Run,
  fields: Omit<NewRun, 'parentRunId'>,
): Promise<{ child: Run; parent: Run }> {
  const child = await insert(change, fields, parent)
  const given = parent.budget && fields.isAllocated !== true ? child.budget : undefined
  if (!given) return { child, parent }
  return { child, parent: { ...parent, budgetAllocations: { ...parent.budgetAllocations, [child.id]: given } } }
}

async function insert(change: Change, { isAllocated = false, ...fields }: NewRun, parent?: Run): Promise<Run> {
  const { tx, scope, at } = change
  const { id = change.context.newId(), projectId, objectiveId } = fields
  if (projectId !== undefined) await readRecord(tx, projects, scope, projectId)
  const objective = objectiveId === undefined ? undefined : await lockRecord(tx, objectives, scope, objectiveId)
  if (parent && isTerminal(parent.status)) {
    throw conflict(`agent run ${parent.id} is ${parent.status}: it takes no children`)
  }
  if (objective && objective.status !== 'active') throw conflict(`objective is ${objective.status}`)
  const ofParent = parent && !isAllocated ? allocate(accountOf(parent), fields.budget) : fields.budget
  // What the parent gave is part of what the objective gave the parent.
  const isCovered = parent?.budget !== undefined && parent.objectiveId === objectiveId
  const budget = objective?.budget && !isCovered ? await allocateFrom(change, objective, id, ofParent) : ofParent
  const run: Run = {
    kind: 'agent_work',
    source: 'manual',
    priority: 0,
    context: {},
    policy: {},
    checkpoint: {},
    availableAt: at,
    ...fields,
    scope,
    id,
    revision: 1,
    createdAt: at,
    updatedAt: at,
    ...(parent && { parentRunId: parent.id }),
    rootRunId: parent?.rootRunId ?? id,
    ...(budget && { budget }),
    status: 'queued',
    queueEnteredAt: at,
    attempt: 0,
    pendingInterventions: [],
    humanInterventions: [],
    pendingResults: [],
    budgetUsage: {},
    budgetReservations: {},
    budgetAllocations: {},
    lastAppliedTurn: 0,
  }
  const [created] = await Promise.all([insertRun(tx, withBudgetState(run)), expectRoomInQueue(change, run)])
  const { status, source, owner } = created
  change.report({
    ...aboutRun(created),
    eventType: 'run.created',
    summary: 'Created',
    payload: { status, source, owner, ...(projectId !== undefined && { projectId }) },
  })
  return created
}

/** @throws conflict when the deployment that executes the run, which is written, had as many queued ones as its capacity says */
async function expectRoomInQueue({ tx, scope, context }: Change, run: Run): Promise<void> {
  const agent = context.agents ? executorOf(run) : undefined
  const limit = agent === undefined ? undefined : await findFullQueue(tx, scope, agent)
  if (limit !== undefined) throw conflict(`agent ${agent} has ${limit} queued runs and takes no more: try again later`)
}

/** What an objective with a budget sets aside for a run. */
async function allocateFrom(
  { tx, now }: Change,
  objective: Objective,
  runId: string,
  asked: BudgetPolicy | undefined,
): Promise<BudgetPolicy | undefined> {
  const given = allocate(accountOfObjective(objective), asked)
  if (given) {
    const budgetAllocations = { ...objective.budgetAllocations, [runId]: given }
    await saveRecord(tx, objectives, { ...objective, budgetAllocations }, now)
  }
  return given
}
