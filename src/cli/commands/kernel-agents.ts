import * as z from 'zod'
import type { AgentInstallation, DeployedAgent } from '../../client/kernel/kernel-types.ts'
import { errorText } from '../../base/errors.ts'
import { defineCommand } from '../command.ts'
import { usageError } from '../exit.ts'
import { readText } from '../input.ts'
import { connectKernel, KERNEL_FLAGS, once, parseParty } from '../kernel/connect.ts'
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

/** What a file holds; the server looks at the fields. */
type Installable = Pick<AgentInstallation, 'manifest' | 'deployment' | 'reason'>
const outline = z.looseObject({ manifest: z.looseObject({}), deployment: z.looseObject({}) })
const isInstallable = (value: unknown): value is Installable => outline.safeParse(value).success

export const install = defineCommand({
  args: { file: { help: 'JSON or YAML with manifest and deployment; `-` is standard input' } },
  flags: {
    ...KERNEL_FLAGS,
    actor: { value: 'type:id', default: 'user:local', help: 'Who installs it' },
    reason: { value: 'text', help: 'Why' },
    key: { value: 'key', help: 'Idempotency key: the same again installs nothing twice' },
  },
  notes: 'Registers the version of the definition, and makes the deployment or moves it to that version.',
  examples: ['kernel agents install ana.yaml', "kernel agents install ana.json --reason 'a better prompt'"],
  async run(context, { file: name, actor, reason, key, ...input }) {
    const given = await parse(name, await readText(context.io, name))
    const { type: actorType, id: actorId } = parseParty('actor', actor)
    const why = reason === undefined ? {} : { reason }
    const installed = await connectKernel(context, input).agents.install(
      { ...given, ...why, actorType, actorId },
      once(key),
    )
    await context.output.answer(installed, () => [row(installed)])
  },
})

/** @throws CliError for what is neither JSON nor YAML, or no object with both parts */
async function parse(name: string, text: string): Promise<Installable> {
  const { fromYaml } = await import('../yaml.ts')
  let value: unknown
  try {
    value = fromYaml(text)
  } catch (error) {
    throw usageError(`${name} is neither JSON nor YAML: ${errorText(error)}`)
  }
  if (isInstallable(value)) return value
  throw usageError(`${name} must be an object with manifest and deployment`)
}
