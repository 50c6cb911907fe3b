import type { RunChange, RunCommand, RunStatus } from '../../client/kernel/kernel-types.ts'
import { KernelApiError, type KernelClient } from '../../client/index.ts'
import { defineCommand } from '../command.ts'
import { usageError } from '../exit.ts'
import {
  BUDGET_FLAG,
  connectKernel,
  KERNEL_FLAGS,
  LIST_FLAGS,
  LOCAL_USER,
  once,
  parseLimits,
  parseOwner,
} from '../kernel/connect.ts'
import { runRow, showPage } from '../kernel/show.ts'

/** Contract: kernel-2.md 17. */

const STATES = [
  'queued',
  'planning',
  'running',
  'paused',
  'sleeping',
  'waiting_for_dependency',
  'waiting_for_agent',
  'waiting_for_approval',
  'waiting_for_event',
  'completed',
  'failed',
  'canceled',
] as const satisfies readonly RunStatus[]

export const list = defineCommand({
  flags: {
    ...KERNEL_FLAGS,
    ...LIST_FLAGS,
    status: { value: 'states', list: true, choices: STATES, help: 'In these states' },
    objective: { value: 'objective', help: 'Of this objective' },
    owner: { value: 'type:id', help: 'Of this agent or team' },
    agent: { value: 'agent', help: 'Given to this agent with `create --agent`' },
    query: { value: 'text', help: 'With this in goal or status' },
  },
  notes: 'The newest first.',
  examples: ['runs list', 'runs list --owner agent:ana --status queued,running', "runs list --query 'moons'"],
  async run(context, { status, objective, owner, agent, query, limit, cursor, ...input }) {
    const of = owner === undefined ? undefined : parseOwner(owner)
    const page = await connectKernel(context, input).runs.list({
      order: 'created_desc',
      ...(status && { status }),
      ...(objective !== undefined && { objectiveId: objective }),
      ...(of && { ownerType: of.type, ownerId: of.id }),
      ...(agent !== undefined && { assignedAgentId: agent }),
      ...(query !== undefined && { q: query }),
      ...(limit !== undefined && { limit }),
      ...(cursor !== undefined && { cursor }),
    })
    await showPage(context, page, runRow)
  },
})

export const create = defineCommand({
  flags: {
    ...KERNEL_FLAGS,
    goal: { value: 'text', required: true, help: 'What is to be done' },
    owner: { value: 'type:id', required: true, help: 'agent:<id> or team:<id>' },
    objective: { value: 'objective', help: 'For this objective, which must be active' },
    agent: { value: 'agent', help: 'Who does it; the owner without it' },
    budget: BUDGET_FLAG,
    key: { value: 'key', help: 'Idempotency key: the same again makes no second run' },
  },
  examples: ["runs create --goal 'Count the moons' --owner agent:ana", 'mem runs watch $(mem -q runs create …)'],
  async run(context, { goal, owner, objective, agent, budget: limits, key, ...input }) {
    const budget = parseLimits('budget', limits)
    const fields = {
      goal,
      owner: parseOwner(owner),
      actor: LOCAL_USER,
      ...(objective !== undefined && { objectiveId: objective }),
      ...(agent !== undefined && { assignedAgentId: agent }),
      ...(budget && { budget }),
    }
    const made = await connectKernel(context, input).runs.create(fields, once(key))
    await context.output.answer(made, () => [runRow(made.run)])
  },
})

export const command = defineCommand({
  args: {
    id: { help: 'Run' },
    kind: { choices: ['pause', 'resume', 'cancel', 'intervene'], help: 'What to do' },
  },
  flags: {
    ...KERNEL_FLAGS,
    instruction: { value: 'text', help: 'What the next turn is told (intervene)' },
    summary: { value: 'text', help: 'Why' },
    revision: { value: 'n', integer: true, help: 'Only at this revision of the run; read first without it' },
    intervention: { value: 'id', help: 'Question to a person that this answers (intervene)' },
    outcome: { value: 'outcome', choices: ['succeeded', 'failed', 'retry'], help: 'Its answer' },
    'top-up': { value: 'dimension=n', repeat: true, help: 'More budget: maxTurns=5 (resume, intervene)' },
  },
  examples: [
    'runs command 019cad8f-ac00-700a-8793-2bcb6ffdf06f pause',
    "runs command 019cad8f-ac00-700a-8793-2bcb6ffdf06f intervene --instruction 'Of Mars alone'",
    'runs command 019cad8f-ac00-700a-8793-2bcb6ffdf06f resume --top-up maxTurns=5',
  ],
  async run(context, { id, kind, instruction, summary, revision, intervention, outcome, 'top-up': topUp, ...input }) {
    if (outcome !== undefined && intervention === undefined) {
      throw usageError('--outcome answers a question', 'Name it with --intervention; `mem runs show <run>` lists them.')
    }
    const client = connectKernel(context, input)
    const budgetTopUp = parseLimits('top-up', topUp)
    const answer = { ...(outcome && { outcome }), ...(instruction !== undefined && { note: instruction }) }
    const told: Partial<RunCommand> =
      intervention === undefined
        ? { ...(instruction !== undefined && { instruction }) }
        : { humanInterventionId: intervention, resolution: answer }
    const asked = {
      kind,
      actor: LOCAL_USER,
      ...told,
      ...(summary !== undefined && { summary }),
      ...(budgetTopUp && { budgetTopUp }),
    }
    const changed =
      revision === undefined
        ? await commandAsItIs(client, id, asked)
        : await client.runs.command(id, { ...asked, expectedRevision: revision }, once())
    await context.output.answer(changed, () => [runRow(changed.run)])
  },
})

const ATTEMPTS = 5

/** A run that is worked on may move between reading it and telling it something. */
async function commandAsItIs(
  client: KernelClient,
  id: string,
  asked: Omit<RunCommand, 'expectedRevision'>,
): Promise<RunChange> {
  const key = once()
  let { revision: expectedRevision } = await client.runs.get(id)
  for (let attempt = 1; ; attempt++) {
    try {
      return await client.runs.command(id, { ...asked, expectedRevision }, key)
    } catch (error) {
      if (!(error instanceof KernelApiError) || !error.isConflict() || attempt === ATTEMPTS) throw error
      const { revision } = await client.runs.get(id)
      if (revision === expectedRevision) throw error
      expectedRevision = revision
    }
  }
}

export const admission = defineCommand({
  flags: {
    ...KERNEL_FLAGS,
    run: { value: 'run', help: 'Judge this run' },
    agent: { value: 'agent', help: 'Runs assigned to this agent' },
    kind: { value: 'kind', choices: ['agent_work', 'conversation', 'workforce_authoring'], help: 'Runs of this kind' },
  },
  notes: 'Why a run stays in the queue, or which one is next. Nothing is changed.',
  examples: ['runs admission', 'runs admission --run 019cad8f-ac00-700a-8793-2bcb6ffdf06f'],
  async run(context, { run, agent, kind, ...input }) {
    const report = await connectKernel(context, input).runs.admission({
      ...(run !== undefined && { runId: run }),
      ...(agent !== undefined && { assignedAgentId: agent }),
      ...(kind && { kind }),
    })
    await context.output.answer(report, () => [
      [report.outcome, report.nextWakeAt === undefined ? undefined : `next at ${report.nextWakeAt}`],
      ...(report.run ? [runRow(report.run)] : []),
      ...report.blocks.map(({ runId, reason, detail, readyAt }) => [runId, reason, readyAt, detail]),
      ...report.workers.map(({ id, kind: work, active, concurrency }) => [id, work, `${active} of ${concurrency}`]),
    ])
  },
})
