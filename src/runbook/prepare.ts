import { randomUUID } from 'node:crypto'
import { systemClock, toTimestamp } from '../base/clock.ts'
import { InvalidWorkflowError } from './errors.ts'
import { fileAccess } from './files.ts'
import { buildGraph, type Graph } from './graph.ts'
import { textsIn } from './hcl/functions/conversion.ts'
import { namedSecrets, resolveInputs } from './inputs.ts'
import type { Workflow } from './model.ts'
import type { NodeServices } from './registry.ts'
import { Masking, SHORT } from './run/masking.ts'
import type { RunOptions } from './run/options.ts'
import { fromRecord } from './run/record.ts'
import type { ReportWarning } from './run/report.ts'
import type { RunValues } from './run/scope.ts'
import { triggerValues } from './run/trigger.ts'
import { validateWorkflow } from './validate/index.ts'

/** An argument of `runWorkflow` that is not valid, such as a missing input. */
export class InvalidRunError extends Error {}

/** @throws InvalidWorkflowError */
export function validGraph(workflow: Workflow, options: RunOptions): Graph {
  const { registry, strict = false } = options
  const diagnostics = validateWorkflow(workflow, {
    registry,
    strict,
    env: options.env ?? {},
    secrets: options.secrets ?? {},
  })
  const errors = diagnostics.filter(({ level }) => level === 'error')
  const graph = buildGraph(workflow)
  if (errors.length > 0 || 'cycle' in graph) throw new InvalidWorkflowError(errors)
  return graph
}

/** What expressions see that is the same for all nodes. @throws InvalidRunError */
export function runValues(graph: Graph, options: RunOptions, warnings: ReportWarning[]): RunValues {
  const { workflow } = graph
  const { values: inputs, problems } = resolveInputs(workflow, options.inputs ?? {})
  if (problems.length > 0) throw new InvalidRunError(problems.map(({ message }) => message).join('\n'))
  const masking = new Masking()
  const secrets = options.secrets ?? {}
  for (const secret of [...Object.values(secrets), ...serviceSecrets(options.services)]) masking.add(secret)
  for (const { name, sensitive } of workflow.inputs.values()) {
    if (sensitive) for (const text of textsIn(inputs[name] ?? null)) masking.add(text)
  }
  for (const [name, text] of Object.entries(namedSecrets(workflow, inputs, secrets))) {
    if (text === '' || text.length >= SHORT) continue
    const message = `${name} has fewer than ${SHORT} characters: it is masked only where it is a whole text`
    warnings.push({ code: 'RB606', message })
  }
  const now = options.now ?? (options.resume ? Date.parse(options.resume.startedAt) : systemClock.now())
  return {
    graph,
    run: {
      id: options.resume?.runId ?? options.runId ?? randomUUID(),
      attempt: options.resume?.attempt ?? 1,
      startedAt: toTimestamp(now),
    },
    now,
    inputs,
    variables: options.vars ?? {},
    trigger: triggerValues(options.triggerData).trigger,
    environment: options.env ?? {},
    secrets,
    masking,
    strict: options.strict ?? false,
    files: fileAccess(workflow.file, options.guard?.allowPaths),
    warn: (code, message, range) => warnings.push({ code, message, range }),
  }
}

function serviceSecrets({ apiKeys = {}, channels = {}, memory }: NodeServices = {}): string[] {
  const webhooks = Object.values(channels).map(({ webhookUrl = '' }) => webhookUrl)
  return [...Object.values(apiKeys), ...webhooks, memory?.apiKey ?? '']
}

/**
 * The nodes that `until` and `only` leave. Ancestors of `only` must have outputs already, but for the loops around it,
 * which give it their items, and for nodes in other bodies, which nobody can name.
 */
export function activeNodes(
  graph: Graph,
  { until, only, resume, mocks = {} }: RunOptions,
): ReadonlySet<number> | undefined {
  const id = only ?? until
  if (id === undefined) return undefined
  const node = graph.indexes.get(id)
  if (node === undefined) throw new InvalidRunError(`unknown node "${id}"`)
  const ancestors = graph.order.filter((other) => graph.isAncestor(other, node))
  if (only !== undefined) {
    const around = [...graph.openers(node)]
    const visible = new Set([undefined, ...around])
    const missing = ancestors.flatMap((other) => {
      const name = graph.nodes[other]?.id ?? ''
      if (around.includes(other) || !visible.has(graph.owner[other])) return []
      return Object.hasOwn(mocks, name) || fromRecord(resume?.nodes.get(name)) ? [] : [name]
    })
    if (missing.length > 0) throw new InvalidRunError(`"${id}" needs the outputs of ${missing.join(', ')}`)
  }
  return new Set([...ancestors, node])
}
