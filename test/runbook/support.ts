import { setTimeout as wait } from 'node:timers/promises'
import { NodeError, type NodeErrorCode } from '../../src/runbook/errors.ts'
import type { Diagnostic } from '../../src/runbook/hcl/diagnostics.ts'
import type { Workflow } from '../../src/runbook/model.ts'
import { parseWorkflow } from '../../src/runbook/parse-workflow.ts'
import { createNodeRegistry, type NodeExecutor, type NodeRegistry } from '../../src/runbook/registry.ts'
import { runWorkflow } from '../../src/runbook/run-workflow.ts'
import type { RunOptions } from '../../src/runbook/run/options.ts'
import type { ReportNode, RunReport } from '../../src/runbook/run/report.ts'
import { validateWorkflow } from '../../src/runbook/validate/index.ts'

/** What `probe` nodes did, in order of time. */
export class Probe {
  readonly started: string[] = []
  running = 0
  mostRunning = 0

  /**
   * `probe`: waits `ms`, then emits `value`, or fails with `fail` (a code) on the first `failures` attempts.
   * `remote`: the same with external effects.
   */
  registry(): NodeRegistry {
    const probe: NodeExecutor = {
      type: 'probe',
      effects: 'none',
      inputSchema: {
        type: 'object',
        properties: {
          value: {},
          ms: { type: 'number' },
          fail: { type: 'string' },
          failures: { type: 'integer' },
          status: { type: 'integer' },
          secret: { type: 'string', sensitive: true },
        },
      },
      execute: async ({ id, config, attempt, signal }) => {
        this.started.push(id)
        this.mostRunning = Math.max(this.mostRunning, ++this.running)
        try {
          await (config.ms === undefined ? undefined : wait(Number(config.ms), undefined, { signal }))
        } finally {
          this.running--
        }
        if (typeof config.fail === 'string' && attempt <= Number(config.failures ?? Infinity)) {
          const details = config.status === undefined ? {} : { statusCode: config.status }
          throw new NodeError(config.fail as NodeErrorCode, `${id} failed`, details)
        }
        return { output: config.value ?? null }
      },
    }
    return createNodeRegistry({ executors: [probe, { ...probe, type: 'remote', effects: 'external' }] })
  }
}

export function parsed(body: string): Workflow {
  const { workflow, diagnostics } = parseWorkflow(`workflow "test" {\n${body}\n}`, 'test.hcl')
  const errors = diagnostics.filter(({ level }) => level === 'error')
  if (!workflow || errors.length > 0)
    throw new Error(errors.map(({ code, message, range }) => `${code} ${range.toString()} ${message}`).join('\n'))
  return workflow
}

export async function run(body: string, options: Partial<RunOptions> = {}, probe = new Probe()): Promise<RunReport> {
  return runWorkflow(parsed(body), { registry: probe.registry(), runId: 'r1', now: Date.UTC(2026, 0, 1), ...options })
}

/** `code line:column` of everything found in a workflow's body, whose first line is 2. */
export const findings = (body: string): string[] =>
  found(body).map(({ code, range }) => `${code} ${range.start.line}:${range.start.column}`)

export function found(body: string): Diagnostic[] {
  const { workflow, diagnostics } = parseWorkflow(`workflow "test" {\n${body}\n}`, 'test.hcl')
  const registry = new Probe().registry()
  const later = workflow ? validateWorkflow(workflow, { registry, env: {}, secrets: {} }) : []
  return [...diagnostics, ...later.filter(({ code }) => code !== 'RB602')]
}

export const node = (report: RunReport, id: string): ReportNode | undefined =>
  report.nodes.find((candidate) => candidate.id === id)

export const output = (report: RunReport, id: string): unknown => {
  const value = node(report, id)?.output
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value))
}

export const statuses = (report: RunReport): Record<string, string> =>
  Object.fromEntries(report.nodes.map(({ id, status }) => [id, status]))

export const edgeStates = (report: RunReport): Record<string, string> =>
  Object.fromEntries(report.edges.map(({ from, to, state }) => [`${from}->${to}`, state]))

/** `a -> b -> c` as edges. */
export const edges = (...paths: string[]): string =>
  paths
    .flatMap((path) => {
      const ids = path.split(' ')
      return ids.slice(1).map((id, i) => `edge ${ids[i] ?? ''} ${id} {}`)
    })
    .join('\n')

/** A report without what differs between equal runs. */
export const stable = (report: RunReport): unknown =>
  JSON.parse(
    JSON.stringify(report, (key, value: unknown) =>
      ['startedAt', 'completedAt', 'durationMs', 'concurrency'].includes(key) ? undefined : value,
    ),
  )
