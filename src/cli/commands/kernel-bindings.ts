import * as z from 'zod'
import type { Binding, BindingContent, Owner } from '../../client/kernel/kernel-types.ts'
import { defineCommand } from '../command.ts'
import { usageError } from '../exit.ts'
import { connectKernel, KERNEL_FLAGS, LOCAL_USER, once } from '../kernel/connect.ts'
import { readDocument } from '../kernel/document.ts'
import type { Row } from '../output.ts'

/** Skills in the hands of agents and teams. Contract: kernel-2.md 2. */

const ARGUMENTS = { deployment: { help: 'Agent deployment' }, id: { help: 'Binding' } } as const
const FLAGS = { ...KERNEL_FLAGS, team: { help: 'It is a team deployment' } } as const
const CHANGE_FLAGS = {
  ...FLAGS,
  reason: { value: 'text', default: 'changed at a command line', help: 'Why; it stays in the history' },
  revision: { value: 'n', integer: true, help: 'Only at this revision, 0 for a new one; read first without it' },
} as const

const ownerOf = (id: string, team: boolean | undefined): Owner => ({ type: team ? 'team' : 'agent', id })

const row = ({ id, disabled, skillId, skillVersion, maximumRisk, allowedActions, enablePrompt }: Binding): Row => [
  id,
  disabled ? 'disabled' : 'enabled',
  `${skillId}@${skillVersion}`,
  maximumRisk,
  [...allowedActions, ...(enablePrompt ? ['(prompt)'] : [])].join(' '),
]

export const list = defineCommand({
  args: { deployment: ARGUMENTS.deployment },
  flags: FLAGS,
  notes: 'Disabled ones too.',
  examples: ['kernel bindings list ana', 'kernel bindings list observatory --team'],
  async run(context, { deployment, team, ...input }) {
    const answer = await connectKernel(context, input).skills.bindings(ownerOf(deployment, team))
    await context.output.list(answer, answer.items, row)
  },
})

const isObject = (value: unknown): value is BindingContent => z.looseObject({}).safeParse(value).success

export const put = defineCommand({
  args: { ...ARGUMENTS, file: { help: 'JSON or YAML with the binding; `-` is standard input' } },
  flags: CHANGE_FLAGS,
  notes: 'Makes a binding, or puts this in the place of the one that is there; a disabled one is enabled.',
  examples: [
    'kernel bindings put ana desk desk-binding.yaml',
    "kernel bindings put ana desk - --reason 'letters to Ben too'",
  ],
  async run(context, { deployment, id, file, team, reason, revision, ...input }) {
    const binding = await readDocument(context.io, file)
    if (!isObject(binding)) throw usageError(`${file} must be an object with skillId, skillVersion and maximumRisk`)
    const { skills } = connectKernel(context, input)
    const owner = ownerOf(deployment, team)
    const current = async (): Promise<number> =>
      (await skills.bindings(owner)).items.find((one) => one.id === id)?.revision ?? 0
    const change = { binding, expectedRevision: revision ?? (await current()), actor: LOCAL_USER, reason }
    const changed = await skills.put(owner, id, change, once())
    await context.output.answer(changed, () => [row(changed.binding)])
  },
})

export const disable = defineCommand({
  args: ARGUMENTS,
  flags: CHANGE_FLAGS,
  notes: 'The deployment cannot use the skill any more; `put` enables it again.',
  examples: ['kernel bindings disable ana desk', "kernel bindings disable ana desk --reason 'no letters at night'"],
  async run(context, { deployment, id, team, reason, revision, ...input }) {
    const { skills } = connectKernel(context, input)
    const owner = ownerOf(deployment, team)
    const current = async (): Promise<number> =>
      (await skills.bindings(owner)).items.find((one) => one.id === id)?.revision ?? 1
    const change = { expectedRevision: revision ?? (await current()), actor: LOCAL_USER, reason }
    const changed = await skills.disable(owner, id, change, once())
    await context.output.answer(changed, () => [row(changed.binding)])
  },
})
