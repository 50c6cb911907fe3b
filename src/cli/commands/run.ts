import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { parseTimestamp } from '../../base/clock.ts'
import { errorText } from '../../base/errors.ts'
import { parseDuration } from '../../runbook/hcl/duration.ts'
import type { Workflow } from '../../runbook/model.ts'
import { InvalidRunError } from '../../runbook/prepare.ts'
import { reportText, writeWhole } from '../../runbook/report-file.ts'
import { pruneRuns } from '../../runbook/run/directories.ts'
import { JournalError, JournalFile, type JournalMode } from '../../runbook/run/journal.ts'
import type { RunOptions } from '../../runbook/run/options.ts'
import type { RunReport } from '../../runbook/run/report.ts'
import { runWorkflow } from '../../runbook/run-workflow.ts'
import { validateWorkflow } from '../../runbook/validate/index.ts'
import { confirm } from '../ask.ts'
import { defineCommand, type Context } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { runFailure } from '../runbook/failure.ts'
import { FILE_ARGUMENT, INPUT_FLAGS, SCOPE_FLAGS } from '../runbook/flags.ts'
import { exclusive, readGiven, readMocks, requireNode } from '../runbook/given.ts'
import { loadWorkflow, requireValid } from '../runbook/load.ts'
import { printReport } from '../runbook/print-report.ts'
import { progressOn } from '../runbook/progress.ts'
import { runRegistry } from '../runbook/registry.ts'
import { nodeServices } from '../runbook/services.ts'
import { runbookSettings } from '../runbook/settings.ts'
import { CONFIG_FLAG } from '../server-flags.ts'

export const run = defineCommand({
  args: { file: FILE_ARGUMENT },
  flags: {
    ...INPUT_FLAGS,
    concurrency: { value: 'n', integer: true, help: 'Nodes that run at once, 1 to 256 (8)' },
    timeout: { value: 'duration', help: 'Limit of the whole run, such as 10m (30m)' },
    report: { value: 'file', help: 'Write the report as JSON' },
    'dry-run': { help: 'Run what has no effects, show the rest; nothing is sent' },
    mock: { value: 'id=file', repeat: true, help: 'Take the output of a node from a JSON file instead of running it' },
    ...SCOPE_FLAGS,
    'from-failed': { value: 'report', help: 'Go on where the run of this report failed' },
    'accept-changes': { help: 'Resume although the definition changed; what depends on changes runs again' },
    'run-dir': { value: 'dir', help: 'Keep the journal in this directory, node by node' },
    journal: { negatable: true, help: 'Keep a journal of every run' },
    'deny-private-networks': { help: 'Refuse connections to loopback and private addresses' },
    'allow-host': { value: 'host', repeat: true, help: 'Except to this host[:port]' },
    'allow-path': { value: 'dir', repeat: true, help: 'file() may read below this directory too' },
    'run-id': { value: 'id', help: 'Id of the run' },
    now: { value: 'time', help: 'What timestamp() gives, as 2026-01-31T12:00:00Z' },
    strict: { help: 'Paths in {{ }} that are missing are errors' },
    unordered: { help: 'Show nodes as they end, not in plan order' },
    yes: { help: 'Answer questions with yes' },
    ...CONFIG_FLAG,
  },
  notes:
    'Runs a workflow in this process; no server is needed. Exit code 4 when the run fails, 130 after Ctrl-C. A run that ' +
    'fails keeps a journal, from which --resume goes on.',
  examples: [
    'run hello.hcl',
    'run hello.hcl --input who=all --output json',
    'run deploy.hcl --secret token=env:TOKEN --report report.json',
    'run deploy.hcl --dry-run',
    'run deploy.hcl --resume ~/.mem/runs/<run id>',
  ],
  async run(context, input) {
    const { io, settings } = context
    const { file, strict = false } = input
    exclusive(input, 'only', 'until')
    exclusive(input, 'resume', 'from-failed')
    const { workflow, issues } = await loadWorkflow(io, file)
    const [configured, given] = [await runbookSettings(io, input.config), await readGiven(io, input, workflow)]
    for (const flag of ['only', 'until'] as const) {
      if (input[flag] !== undefined) requireNode(workflow, flag, input[flag])
    }
    const registry = await runRegistry(io, configured.code)
    const resumed = await resumeOf(context, workflow, input, given)
    const inputs = { ...resumed?.inputs, ...given.inputs }
    const found = validateWorkflow(workflow, { ...given, inputs, registry, strict })
    requireValid(io, file, [...issues, ...found])

    const runId = resumed?.state.runId ?? input['run-id'] ?? randomUUID()
    const journal = journalOf(input, configured, runId)
    const progress = settings.output === 'text' && !settings.quiet ? progressOn(io.stderr) : undefined
    const stop = new AbortController()
    const release = onStopSignal((signal) => stop.abort(signal))
    const timeoutMs = limitOf(input.timeout) ?? (workflow.timeoutMs === undefined ? configured.timeout : undefined)
    const concurrency = input.concurrency ?? (workflow.concurrency === undefined ? configured.concurrency : undefined)
    const triggerData = given.triggerData ?? resumed?.triggerData ?? undefined
    const options: RunOptions = {
      ...given,
      registry,
      inputs,
      vars: { ...resumed?.vars, ...given.vars },
      ...(triggerData !== undefined && { triggerData }),
      ...(concurrency !== undefined && { concurrency }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      signal: stop.signal,
      runId,
      ...(input.now !== undefined && { now: timeOf(input.now) }),
      dryRun: input['dry-run'] === true,
      strict,
      mocks: readMocks(workflow, input.mock),
      ...(input.until !== undefined && { until: input.until }),
      ...(input.only !== undefined && { only: input.only }),
      ...(resumed && { resume: resumed.state }),
      ...(journal && { journal }),
      guard: {
        denyPrivateNetworks: configured.deny_private_networks || input['deny-private-networks'] === true,
        allowHosts: [...configured.allow_hosts, ...input['allow-host']],
        allowPaths: input['allow-path'],
      },
      services: nodeServices(io, settings, configured),
      unordered: input.unordered === true || progress?.live === true,
      confirm: async (id, signal) => {
        const ask = (): Promise<boolean> => confirm(io, `Run ${workflow.name} ("${id}")?`, signal)
        return input.yes === true || (progress ? progress.during(ask) : ask())
      },
      onEvent: (event) => {
        if (settings.output === 'jsonl') io.stdout.write(`${JSON.stringify(event)}\n`)
        progress?.event(event)
      },
    }
    let report: RunReport
    try {
      report = await runWorkflow(workflow, options)
    } catch (error) {
      throw explain(error)
    } finally {
      release()
      progress?.end()
    }
    if (input['run-dir'] === undefined && report.journal !== undefined)
      pruneRuns(configured.state_dir, configured.keep_runs)
    await conclude(context, input, report)
  },
})

/** Writes and prints what came of a run. @throws CliError when it failed, or its report could not be written */
async function conclude(
  { io, settings, output }: Context,
  input: Parameters<typeof runFailure>[2] & { readonly file: string; readonly report: string | undefined },
  report: RunReport,
): Promise<void> {
  const unwritten = input.report === undefined ? undefined : writeReport(input.report, report)
  for (const { code, message, range } of report.warnings)
    output.note(`warning: ${code}: ${message}${range === undefined ? '' : ` at ${range.toString()}`}`)
  for (const { node, code, message } of report.toleratedFailures)
    output.note(`tolerated: ${node} failed: ${code}: ${message}`)
  await printReport(io, settings.output, report)
  if (report.exitCode !== 0) {
    if (unwritten !== undefined) output.note(`warning: ${unwritten}`)
    throw runFailure(report, input.file, input)
  }
  if (unwritten !== undefined) throw new CliError(EXIT.failure, unwritten)
}

interface ResumeFlags {
  readonly resume: string | undefined
  readonly 'from-failed': string | undefined
  readonly 'accept-changes': boolean | undefined
  readonly yes: boolean | undefined
}

/** Loaded only for a resume. */
async function resumeOf(
  context: Context,
  workflow: Workflow,
  flags: ResumeFlags,
  given: Awaited<ReturnType<typeof readGiven>>,
) {
  if (flags.resume === undefined && flags['from-failed'] === undefined) return undefined
  const { resumeFrom } = await import('../runbook/resume.ts')
  return resumeFrom(context.io, workflow, given, {
    directory: flags.resume,
    report: flags['from-failed'],
    acceptChanges: flags['accept-changes'] === true,
    yes: flags.yes === true,
  })
}

interface JournalFlags {
  readonly resume: string | undefined
  readonly 'run-dir': string | undefined
  readonly journal: boolean | undefined
  readonly 'dry-run': boolean | undefined
}

function journalOf(
  flags: JournalFlags,
  { journal, state_dir }: { readonly journal: JournalMode | 'never'; readonly state_dir: string },
  runId: string,
): JournalFile | undefined {
  // what goes on must not be lost either: a second resume would run it again
  const mode = (flags['run-dir'] ?? flags.resume) !== undefined || flags.journal === true ? 'always' : journal
  if (flags.journal === false || flags['dry-run'] === true || mode === 'never') return undefined
  if (!/^[\w.:-]{1,128}$/.test(runId) || /^\.+$/.test(runId)) throw usageError(`--run-id '${runId}' is no run id`)
  return new JournalFile(flags['run-dir'] ?? flags.resume ?? join(state_dir, runId), mode)
}

function limitOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const number = Number(text)
  const ms = parseDuration(Number.isNaN(number) ? text : number)
  if (ms === undefined || ms <= 0)
    throw usageError(`--timeout '${text}' is no duration`, 'Write it as 30s, 5m or 1h30m.')
  return ms
}

function timeOf(text: string): number {
  const ms = parseTimestamp(text)
  if (ms === undefined) throw usageError(`--now '${text}' is no time`, 'Write it as 2026-01-31T12:00:00Z.')
  return ms
}

/** The first signal cancels the run; the next one ends the program at once, also when it came together with the first. */
function onStopSignal(stop: (signal: NodeJS.Signals) => void): () => void {
  const signals = ['SIGINT', 'SIGTERM'] as const
  const release = (): void => signals.forEach((signal) => void process.removeListener(signal, listener))
  let stopped = false
  const listener = (signal: NodeJS.Signals): void => {
    if (stopped) {
      release()
      process.kill(process.pid, signal)
    }
    stopped = true
    stop(signal)
  }
  for (const signal of signals) process.on(signal, listener)
  return release
}

function explain(error: unknown): unknown {
  if (error instanceof InvalidRunError) return usageError(error.message)
  return error instanceof JournalError ? new CliError(EXIT.failure, `RB609: ${error.message}`) : error
}

/** Gives the reason when it can't be written. */
function writeReport(path: string, report: RunReport): string | undefined {
  try {
    writeWhole(path, `${reportText(report)}\n`)
    return undefined
  } catch (error) {
    return `cannot write ${path}: ${errorText(error)}`
  }
}
