import { readFileSync } from 'node:fs'
import * as z from 'zod'
import { errorText } from '../../base/errors.ts'
import { parseJson } from '../../runbook/hcl/json.ts'
import type { Value } from '../../runbook/hcl/values.ts'
import { namedSecrets } from '../../runbook/inputs.ts'
import type { Workflow } from '../../runbook/model.ts'
import { journalOfReport, resumeFromReport } from '../../runbook/resume-report.ts'
import { ChangedError, prepareResume, UnusableOutputError } from '../../runbook/resume.ts'
import { JournalError } from '../../runbook/run/journal.ts'
import type { ResumeState } from '../../runbook/run/options.ts'
import { readJournal } from '../../runbook/run/read-journal.ts'
import type { RunReport } from '../../runbook/run/report.ts'
import { confirm } from '../ask.ts'
import type { Io } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import type { Given } from './given.ts'

interface Resumed {
  readonly state: ResumeState
  /** What the earlier run was given; flags go over it. */
  readonly inputs: Readonly<Record<string, Value>>
  readonly vars: Readonly<Record<string, Value>>
  readonly triggerData: Value
}

interface ResumeFlags {
  readonly directory: string | undefined
  readonly report: string | undefined
  readonly acceptChanges: boolean
  readonly yes: boolean
}

/** What an earlier run leaves to do. Contract: runbook.md 9. @throws CliError */
export async function resumeFrom(io: Io, workflow: Workflow, given: Given, flags: ResumeFlags): Promise<Resumed> {
  try {
    if (flags.directory !== undefined) return await fromJournal(io, workflow, given, flags.directory, flags)
    return fromReport(workflow, given, flags.report ?? '', flags)
  } catch (error) {
    if (error instanceof ChangedError) {
      throw new CliError(EXIT.failure, `RB607: ${error.message}`, '--accept-changes runs what depends on it again.')
    }
    if (error instanceof UnusableOutputError) throw new CliError(EXIT.failure, `RB608: ${error.message}`)
    if (error instanceof JournalError) throw new CliError(EXIT.failure, `RB609: ${error.message}`)
    throw error
  }
}

async function fromJournal(
  io: Io,
  workflow: Workflow,
  given: Given,
  directory: string,
  { acceptChanges, yes }: ResumeFlags,
): Promise<Resumed> {
  const journal = readJournal(directory, namedSecrets(workflow, given.inputs, given.secrets))
  const { inputs, triggerData } = given
  const lacking = journal.header.sensitive.filter((name) => !Object.hasOwn(inputs, name))
  if (lacking.length > 0) {
    const flags = lacking.map((name) => `--input ${name}=…`).join(' ')
    throw usageError(`RB602: missing sensitive input ${lacking.join(', ')}`, `A journal does not hold them: ${flags}`)
  }
  const state = prepareResume(workflow, journal, { inputs, triggerData, acceptChanges, from: directory })
  await confirmRepeating(io, journal.unfinished, yes)
  return {
    state,
    inputs: journal.header.inputs,
    vars: journal.header.variables,
    triggerData: journal.header.triggerData,
  }
}

/** A node with external effects was running when the run broke off: nobody knows whether they happened. */
async function confirmRepeating(io: Io, unfinished: readonly string[], yes: boolean): Promise<void> {
  for (const path of unfinished) {
    if (yes || (await confirm(io, `${path} was running when the run broke off. Run it again?`))) continue
    throw new CliError(
      EXIT.failure,
      `${path} was running when the run broke off, it may have had its effect`,
      'Look whether it did; --yes runs it again.',
    )
  }
}

const reportShape = z.looseObject({
  reportVersion: z.literal(1),
  run: z.looseObject({ id: z.string(), attempt: z.number() }),
  startedAt: z.string(),
  inputs: z.unknown(),
  nodes: z.array(z.looseObject({ id: z.string(), status: z.string(), attempts: z.array(z.unknown()) })),
  toleratedFailures: z.array(z.looseObject({ node: z.string() })),
})

const isReport = (value: unknown): value is RunReport => reportShape.safeParse(value).success

function fromReport(workflow: Workflow, given: Given, file: string, { acceptChanges }: ResumeFlags): Resumed {
  let report: unknown
  try {
    report = parseJson(readFileSync(file, 'utf8'))
  } catch (error) {
    throw usageError(`RB601: cannot read the report ${file}: ${errorText(error)}`)
  }
  if (!isReport(report)) throw usageError(`${file} is no run report`)
  const { inputs, triggerData } = given
  const state = resumeFromReport(workflow, report, { inputs, triggerData, acceptChanges, from: file })
  const { header } = journalOfReport(workflow, report)
  return { state, inputs: header.inputs, vars: header.variables, triggerData: header.triggerData }
}
