import * as z from 'zod'
import type { DeployedAgent } from '../../client/kernel/kernel-types.ts'
import { defineCommand } from '../command.ts'
import { usageError } from '../exit.ts'
import { connectKernel, KERNEL_FLAGS, parseParty } from '../kernel/connect.ts'
import { readDocument } from '../kernel/document.ts'
import { installWithSkills, type Installable } from '../kernel/install.ts'
import type { Row } from '../output.ts'

/** Agents of the kernel; those that use the memory have the noun `agents`. */

const row = ({ deployment, definition }: DeployedAgent): Row => [
  deployment.id,
  deployment.rolloutStatus,
  `${definition.id}@${deployment.activeVersion}`,
  deployment.environment,
  definition.displayName,
]

export const list = defineCommand({
  flags: {
    ...KERNEL_FLAGS,
    all: { help: 'Retired ones too' },
  },
  examples: ['kernel agents list'],
  async run(context, { all, ...input }) {
    const answer = await connectKernel(context, input).agents.list(all ? {} : { excludeStatuses: ['retired'] })
    await context.output.list(answer, answer.items, row)
  },
})

export const show = defineCommand({
  args: { id: { help: 'Agent deployment' } },
  flags: KERNEL_FLAGS,
  examples: ['kernel agents show ana', 'kernel agents show ana --output yaml'],
  async run(context, { id, ...input }) {
    const agent = await connectKernel(context, input).agents.get(id)
    await context.output.answer(agent, () => [
      row(agent),
      ['risk', agent.definition.authority.maximumRisk],
      ['purpose', agent.definition.purpose],
    ])
  },
})

const outline = z.looseObject({
  manifest: z.looseObject({}),
  deployment: z.looseObject({ id: z.string() }),
  bindings: z.array(z.looseObject({ id: z.string() })).optional(),
})
const isInstallable = (value: unknown): value is Installable => outline.safeParse(value).success

export const install = defineCommand({
  args: { file: { help: 'JSON or YAML with manifest, deployment, bindings; `-` is standard input' } },
  flags: {
    ...KERNEL_FLAGS,
    actor: { value: 'type:id', default: 'user:local', help: 'Who installs it' },
    reason: { value: 'text', help: 'Why' },
    key: { value: 'key', help: 'Idempotency key: the same again installs nothing twice' },
  },
  notes:
    'Registers the version of the definition, and makes the deployment or moves it to that version. The file may hold ' +
    'bindings, a list of skills for it: until they stand the agent takes no runs. One that was paused stays so.',
  examples: ['kernel agents install ana.yaml', "kernel agents install ana.json --reason 'a better prompt'"],
  async run(context, { file: name, actor, reason, key, ...input }) {
    const given = await readDocument(context.io, name)
    if (!isInstallable(given)) {
      throw usageError(`${name} must be an object with manifest and deployment; bindings is a list, each with its id`)
    }
    const { type: actorType, id: actorId } = parseParty('actor', actor)
    const file = { ...given, ...(reason !== undefined && { reason }) }
    const installed = await installWithSkills(connectKernel(context, input), file, { actorType, actorId }, key)
    await context.output.answer(installed, () => [row(installed)])
    if (given.bindings && installed.deployment.rolloutStatus !== 'active') {
      context.output.note(`it is ${installed.deployment.rolloutStatus}: rolloutStatus: active in the file lets it run`)
    }
  },
})
