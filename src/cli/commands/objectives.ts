import type { Objective } from '../../client/kernel/kernel-types.ts'
import { defineCommand } from '../command.ts'
import {
  BUDGET_FLAG,
  connectKernel,
  KERNEL_FLAGS,
  LIST_FLAGS,
  LOCAL_USER,
  once,
  parseLimits,
  parseOwner,
  partyText,
} from '../kernel/connect.ts'
import { runRow, showPage } from '../kernel/show.ts'
import { excerpt, type Row } from '../output.ts'

/** Contract: kernel-2.md 17. */

const STATES = ['draft', 'active', 'paused', 'satisfied', 'failed', 'retired'] as const

const row = (objective: Objective): Row => [
  objective.id,
  objective.status,
  partyText(objective.owner),
  objective.priority > 0 ? `priority ${objective.priority}` : undefined,
  excerpt(objective.title),
]

export const list = defineCommand({
  flags: {
    ...KERNEL_FLAGS,
    ...LIST_FLAGS,
    status: { value: 'states', list: true, choices: STATES, help: 'In these states' },
  },
  examples: ['objectives list', 'objectives list --status active'],
  async run(context, { status, limit, cursor, ...input }) {
    const page = await connectKernel(context, input).objectives.list({
      ...(status && { status }),
      ...(limit !== undefined && { limit }),
      ...(cursor !== undefined && { cursor }),
    })
    await showPage(context, page, row)
  },
})

export const show = defineCommand({
  args: { id: { help: 'Objective' } },
  flags: KERNEL_FLAGS,
  notes: 'With its newest runs.',
  examples: ['objectives show 019cad8f-ac00-700a-8793-2bcb6ffdf06f'],
  async run(context, { id, ...input }) {
    const found = await connectKernel(context, input).objectives.get(id)
    await context.output.answer(found, () => [
      row(found.objective),
      ['goal', found.objective.goal],
      ...found.runs.map(runRow),
    ])
  },
})

export const create = defineCommand({
  flags: {
    ...KERNEL_FLAGS,
    title: { value: 'text', required: true, help: 'In a few words' },
    goal: { value: 'text', required: true, help: 'What is to be reached' },
    owner: { value: 'type:id', required: true, help: 'agent:<id> or team:<id>' },
    status: { value: 'state', choices: STATES, default: 'draft', help: 'Runs need an active one' },
    budget: BUDGET_FLAG,
  },
  examples: ["objectives create --title Moons --goal 'Know all moons' --owner agent:ana --status active"],
  async run(context, { title, goal, owner, status, budget: limits, ...input }) {
    const budget = parseLimits('budget', limits)
    const fields = { title, goal, owner: parseOwner(owner), status, actor: LOCAL_USER, ...(budget && { budget }) }
    const objective = await connectKernel(context, input).objectives.create(fields, once())
    await context.output.answer(objective, () => [row(objective)])
  },
})
