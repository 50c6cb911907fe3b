import type { Workflow } from '../../runbook/model.ts'
import { planWorkflow, type Plan } from '../../runbook/plan.ts'
import { InvalidRunError } from '../../runbook/prepare.ts'
import { reportText } from '../../runbook/report-file.ts'
import { validateWorkflow } from '../../runbook/validate/index.ts'
import { defineCommand, type Io } from '../command.ts'
import { usageError } from '../exit.ts'
import { plain } from '../output.ts'
import { FILE_ARGUMENT, INPUT_FLAGS, SCOPE_FLAGS } from '../runbook/flags.ts'
import { exclusive, readGiven, requireNode, type Given } from '../runbook/given.ts'
import { loadWorkflow, requireValid } from '../runbook/load.ts'
import { runRegistry } from '../runbook/registry.ts'

export const plan = defineCommand({
  args: { file: FILE_ARGUMENT },
  flags: {
    ...INPUT_FLAGS,
    ...SCOPE_FLAGS,
    'allow-path': { value: 'dir', repeat: true, help: 'file() may read below this directory too' },
  },
  notes: 'Shows every node in the order of a run, with its attributes as far as they are known. Runs nothing.',
  examples: ['plan deploy.hcl', 'plan deploy.hcl --input tag=v3 --output json', 'plan deploy.hcl --until build'],
  async run({ io, settings }, input) {
    const { file, only, until } = input
    exclusive(input, 'only', 'until')
    const { workflow, issues } = await loadWorkflow(io, file)
    const given = await readGiven(io, input, workflow)
    if (only !== undefined) requireNode(workflow, 'only', only)
    if (until !== undefined) requireNode(workflow, 'until', until)
    const resumed = await resumeOf(io, workflow, given, input.resume)
    const inputs = { ...resumed?.inputs, ...given.inputs }
    const registry = await runRegistry(io)
    requireValid(io, file, [...issues, ...validateWorkflow(workflow, { ...given, inputs, registry })])
    const made = planOf(() =>
      planWorkflow(workflow, {
        ...given,
        inputs,
        vars: { ...resumed?.vars, ...given.vars },
        registry,
        guard: { allowPaths: input['allow-path'] },
        ...(only !== undefined && { only }),
        ...(until !== undefined && { until }),
        ...(resumed && { resume: resumed.state, triggerData: given.triggerData ?? resumed.triggerData }),
      }),
    )
    io.stdout.write(settings.output === 'text' ? textOf(made) : `${reportText(made)}\n`)
  },
})

/** Loaded only for a resume. */
async function resumeOf(io: Io, workflow: Workflow, given: Given, directory: string | undefined) {
  if (directory === undefined) return undefined
  const { resumeFrom } = await import('../runbook/resume.ts')
  return resumeFrom(io, workflow, given, { directory, report: undefined, acceptChanges: true, yes: true })
}

function planOf(make: () => Plan): Plan {
  try {
    return make()
  } catch (error) {
    if (error instanceof InvalidRunError) throw usageError(error.message)
    throw error
  }
}

function textOf({ workflow, nodes, requires }: Plan): string {
  const needs = Object.entries(requires).flatMap(([name, names]: [string, readonly string[]]) =>
    names.length > 0 ? [`needs ${name}: ${names.join(', ')}\n`] : [],
  )
  return `plan of workflow "${plain(workflow.name)}"\n${nodes.map(nodeText).join('')}${needs.join('')}`
}

function nodeText(node: Plan['nodes'][number], place: number): string {
  const { id, type, effects, reused, incoming, config, retry, timeoutMs, error, description } = node
  const lines = [
    `${place + 1}. ${id} (${type}) effects: ${effects}${reused ? ', reused' : ''}`,
    ...(description === undefined ? [] : [`     ${plain(description)}`]),
    ...incoming.map(({ from, on, condition, when }) => {
      const parts = [on === 'success' ? '' : `on ${on}`, condition && `condition ${condition}`, when && `when ${when}`]
      return `     <- ${[from, ...parts].filter(Boolean).join(', ')}`
    }),
    ...Object.entries(config ?? {}).map(([name, value]) => `     ${name} = ${oneLine(value)}`),
    ...(retry === undefined ? [] : [`     retry ${typeof retry === 'string' ? retry : `${retry.attempts} attempts`}`]),
    ...(timeoutMs === undefined
      ? []
      : [`     timeout ${typeof timeoutMs === 'string' ? timeoutMs : `${timeoutMs} ms`}`]),
    ...(error === undefined ? [] : [`     error: ${error}`]),
  ]
  return `${lines.join('\n')}\n`
}

const oneLine = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
