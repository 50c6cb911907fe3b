import { systemClock, toTimestamp } from '../base/clock.ts'
import { errorText } from '../base/errors.ts'
import { version } from '../base/version.ts'
import { nodeError, type NodeFailure } from './errors.ts'
import type { Graph } from './graph.ts'
import { EvaluationError } from './hcl/errors.ts'
import { fromJson } from './hcl/json.ts'
import { mapOf, type Value } from './hcl/values.ts'
import { nodeDigests, workflowDigest } from './digest.ts'
import { namedSecrets } from './inputs.ts'
import { MAX_CONCURRENCY } from './parse-workflow.ts'
import type { Workflow } from './model.ts'
import { activeNodes, InvalidRunError, runValues, validGraph } from './prepare.ts'
import { failureFields } from './run/attempts.ts'
import type { JournalHeader, RunOptions } from './run/options.ts'
import {
  orderedWarnings,
  ReportBuilder,
  response,
  toleratedFailures,
  type ReportWarning,
  type RunReport,
  type RunStatus,
} from './run/report.ts'
import { fromRecord } from './run/record.ts'
import { Runner, type RunOutcome } from './run/runner.ts'
import { evaluateLocals, type RunValues } from './run/scope.ts'
import { Frame } from './run/state.ts'

const DEFAULT_TIMEOUT_MS = 30 * 60_000
const DEFAULT_CONCURRENCY = 8

/**
 * Runs a workflow; what fails in it is in the report. Contract: runbook.md 4, 10, 11.
 * @throws InvalidWorkflowError, InvalidRunError before anything runs
 */
export async function runWorkflow(workflow: Workflow, options: RunOptions): Promise<RunReport> {
  const graph = validGraph(workflow, options)
  const warnings: ReportWarning[] = []
  const values = runValues(graph, options, warnings)
  const concurrency = options.concurrency ?? workflow.concurrency ?? DEFAULT_CONCURRENCY
  if (!(Number.isInteger(concurrency) && concurrency >= 1 && concurrency <= MAX_CONCURRENCY)) {
    throw new InvalidRunError(`concurrency is a whole number from 1 to ${MAX_CONCURRENCY}`)
  }
  const active = activeNodes(graph, options)
  const time = (event: 'run.started' | 'run.finished', detail: object): void =>
    options.onEvent?.({ event, time: toTimestamp(systemClock.now()), runId: values.run.id, ...detail })
  const started = systemClock.now()
  time('run.started', { workflow: workflow.name })
  if (!options.dryRun) beginJournal(graph, values, options)
  const outcome = await outcomeOf(graph, values, { ...options, concurrency }, active)
  const completed = systemClock.now()
  const status = statusOf(outcome, options)
  endJournal(options, status, warnings)
  const report = buildReport(graph, values, outcome, options, { status, started, completed, concurrency, warnings })
  time('run.finished', { status: report.status, exitCode: report.exitCode, durationMs: report.durationMs })
  return report
}

function beginJournal(
  graph: Graph,
  values: RunValues,
  { journal, inputs = {}, triggerData, secrets = {}, resume }: RunOptions,
): void {
  if (!journal) return
  const { workflow } = graph
  const taken = [...(resume?.nodes.values() ?? [])].filter((record) => fromRecord(record))
  const open = [...workflow.inputs.values()].flatMap(({ name, sensitive }) =>
    sensitive ? [] : [[name, values.inputs[name] ?? null] as const],
  )
  const header: JournalHeader = {
    runId: values.run.id,
    attempt: values.run.attempt,
    workflow: workflow.name,
    file: workflow.file,
    startedAt: values.run.startedAt,
    inputs: Object.fromEntries(open),
    triggerData: fromJson(triggerData ?? null),
    variables: values.variables,
    digests: nodeDigests(workflow),
    workflowDigest: workflowDigest(workflow),
    sensitive: Object.keys(inputs).filter((name) => workflow.inputs.get(name)?.sensitive),
    reused: taken.map(({ path }) => path),
  }
  const named = namedSecrets(workflow, values.inputs, secrets)
  journal.begin(header, { named, mask: (value) => values.masking.value(value) }, taken)
}

/** A journal that can't be written doesn't take the report along. */
function endJournal({ journal }: RunOptions, status: RunStatus, warnings: ReportWarning[]): void {
  try {
    journal?.end(status)
  } catch (error) {
    warnings.push({ code: 'RB609', message: `no journal was written: ${errorText(error)}` })
  }
}

type Settings = RunOptions & { concurrency: number }

/** A local that can't be evaluated ends the run before any node. */
async function outcomeOf(
  graph: Graph,
  values: RunValues,
  options: Settings,
  active: ReadonlySet<number> | undefined,
): Promise<RunOutcome> {
  let locals: ReadonlyMap<string, Value>
  try {
    locals = evaluateLocals(values)
  } catch (error) {
    if (!(error instanceof EvaluationError)) throw error
    const failure: NodeFailure = { ...failureFields(nodeError(error), values.masking), node: '', attempts: 0 }
    return { root: new Frame(graph, []), failure }
  }
  const runner = new Runner(graph, values, locals, options, active)
  return runner.run(options.timeoutMs ?? graph.workflow.timeoutMs ?? DEFAULT_TIMEOUT_MS)
}

interface Circumstances {
  status: RunStatus
  started: number
  completed: number
  concurrency: number
  warnings: readonly ReportWarning[]
}

function buildReport(
  graph: Graph,
  values: RunValues,
  outcome: RunOutcome,
  options: RunOptions,
  { status, started, completed, concurrency, warnings }: Circumstances,
): RunReport {
  const { workflow } = graph
  const { masking } = values
  const builder = new ReportBuilder(graph, options.registry, masking)
  const answer = response(graph, outcome.root)
  return {
    reportVersion: 1,
    program: { name: 'mem', version },
    run: {
      id: values.run.id,
      attempt: values.run.attempt,
      ...(options.resume && { resumedFrom: options.resume.from }),
    },
    workflow: { name: workflow.name, file: workflow.file, digest: workflowDigest(workflow) },
    status,
    exitCode: status === 'cancelled' && options.signal?.reason === 'SIGTERM' ? 143 : EXIT_CODES[status],
    startedAt: toTimestamp(started),
    completedAt: toTimestamp(completed),
    durationMs: completed - started,
    concurrency,
    inputs: masking.value(mapOf(Object.entries(values.inputs))),
    ...(options.triggerData !== undefined && { triggerData: masking.value(fromJson(options.triggerData)) }),
    nodes: builder.nodes(outcome.root),
    edges: builder.edges(outcome.root),
    ...(answer !== undefined && { response: masking.value(answer) }),
    ...(outcome.failure && { error: outcome.failure }),
    toleratedFailures: toleratedFailures(outcome.root),
    warnings: orderedWarnings(warnings),
    ...(options.journal?.path !== undefined && { journal: options.journal.path }),
  }
}

const EXIT_CODES: Record<RunStatus, number> = { succeeded: 0, dry_run: 0, failed: 4, timed_out: 4, cancelled: 130 }

function statusOf({ failure, stoppedBy }: RunOutcome, { dryRun }: RunOptions): RunStatus {
  if (stoppedBy === 'signal') return 'cancelled'
  if (stoppedBy === 'timeout') return 'timed_out'
  if (failure) return 'failed'
  return dryRun ? 'dry_run' : 'succeeded'
}
