import { readFileSync } from 'node:fs'
import { errorText } from '../../base/errors.ts'
import {
  byPosition,
  fileDiagnostic,
  MAX_DIAGNOSTICS,
  renderDiagnostic,
  type Diagnostic,
} from '../../runbook/hcl/diagnostics.ts'
import { Source } from '../../runbook/hcl/source.ts'
import type { Workflow } from '../../runbook/model.ts'
import { parseWorkflow, type ParsedWorkflow } from '../../runbook/parse-workflow.ts'
import type { Io } from '../command.ts'
import { usageError } from '../exit.ts'
import { counted } from '../output.ts'

/** What stands for the name of a file that is standard input. */
export const STANDARD_INPUT = '<stdin>'

/** Parses a file, `-` being standard input; one that can't be read is RB601. */
export async function readWorkflow(io: Io, file: string): Promise<ParsedWorkflow> {
  if (file !== '-') {
    try {
      return parseWorkflow(readFileSync(file), file)
    } catch (error) {
      const message = `cannot read ${file}: ${errorText(error)}`
      return { diagnostics: [fileDiagnostic('RB601', message, new Source('', file))], omitted: 0 }
    }
  }
  const chunks: Uint8Array[] = []
  for await (const chunk of io.stdin) chunks.push(chunk)
  return parseWorkflow(Buffer.concat(chunks), STANDARD_INPUT)
}

const LEVELS = ['error', 'warning', 'info'] as const

/** The issues of a file in text form, those beyond the bound only counted; errors go before the others. */
export function issuesText(issues: readonly Diagnostic[], omitted = 0): string {
  const gravest = LEVELS.flatMap((level) => issues.filter((issue) => issue.level === level)).slice(0, MAX_DIAGNOSTICS)
  const blocks = gravest.sort(byPosition).map((issue) => `${renderDiagnostic(issue)}\n`)
  const left = omitted + issues.length - gravest.length
  return [...blocks, ...(left > 0 ? [`and ${counted(left, 'more issue')}\n`] : [])].join('\n')
}

/** Shows what is wrong on stderr. @throws CliError when the file holds no valid workflow */
export function requireValid(
  { stderr }: Io,
  file: string,
  issues: readonly Diagnostic[],
  { omitted = 0, strict = false } = {},
): void {
  const shown = issues.filter(({ level }) => level !== 'info')
  const errors = shown.filter(({ level }) => level === 'error' || strict)
  if (shown.length > 0) stderr.write(`${issuesText(shown, omitted)}\n`)
  if (errors.length > 0) throw usageError(`${file} is not valid: ${counted(errors.length + omitted, 'error')}`)
}

/** @throws CliError (usage), with the issues shown on stderr */
export async function loadWorkflow(
  io: Io,
  file: string,
): Promise<{ workflow: Workflow; issues: readonly Diagnostic[] }> {
  const { workflow, diagnostics, omitted } = await readWorkflow(io, file)
  const broken = diagnostics.some(({ level }) => level === 'error')
  if (broken || !workflow) requireValid(io, file, diagnostics, { omitted })
  if (!workflow) throw usageError(`${file} holds no workflow`)
  return { workflow, issues: diagnostics }
}
