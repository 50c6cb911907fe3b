import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { byPosition, diagnosticJson, type Diagnostic } from '../../runbook/hcl/diagnostics.ts'
import type { ParsedWorkflow } from '../../runbook/parse-workflow.ts'
import { createNodeRegistry } from '../../runbook/registry.ts'
import { requirements } from '../../runbook/requirements.ts'
import { validateWorkflow } from '../../runbook/validate/index.ts'
import { defineCommand, type Io } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { counted } from '../output.ts'
import { INPUT_FLAGS, type InputFlags } from '../runbook/flags.ts'
import { readGiven } from '../runbook/given.ts'
import { issuesText, readWorkflow } from '../runbook/load.ts'
import { runRegistry } from '../runbook/registry.ts'

interface Checked extends ParsedWorkflow {
  readonly file: string
  readonly issues: readonly Diagnostic[]
}

export const validate = defineCommand({
  args: { files: { help: 'Workflow files, directories with .hcl and .wf files, or -', many: true } },
  flags: {
    json: { help: 'Print the issues as JSON' },
    strict: { help: 'Warnings are errors' },
    'cross-check': { help: 'Compare with hcl2-parser, when it is installed' },
    ...INPUT_FLAGS,
  },
  notes:
    'Runs nothing. Exit code 1 when there is an error. Without input flags, missing inputs and secrets are no errors.',
  examples: ['validate deploy.hcl', 'validate runbooks/ --strict', 'validate deploy.hcl --input tag=v3 --json'],
  async run({ io, output }, { files, json, strict = false, 'cross-check': crossCheck = false, ...flags }) {
    const checked: Checked[] = []
    for (const file of files.flatMap(workflowsIn)) checked.push(await check(io, file, flags, { strict, crossCheck }))
    const issues = checked.flatMap((each) => each.issues)
    const count = (level: Diagnostic['level']): number => issues.filter((issue) => issue.level === level).length
    const omitted = checked.reduce((total, each) => total + each.omitted, 0)
    const summary = { errors: count('error') + omitted, warnings: count('warning'), infos: count('info') }
    const valid = summary.errors === 0 && !(strict && summary.warnings > 0)
    if (json) io.stdout.write(`${JSON.stringify(jsonOf(checked, issues, valid, summary), null, 2)}\n`)
    else for (const each of checked) io.stdout.write(textOf(each))
    if (valid) return
    const invalid = strict ? summary.errors + summary.warnings : summary.errors
    if (json) throw new CliError(EXIT.usage, `not valid: ${counted(invalid, 'error')}`)
    output.note(`${counted(summary.errors, 'error')}, ${counted(summary.warnings, 'warning')}`)
    throw new CliError(EXIT.usage, 'not valid', strict ? '--strict counts warnings as errors.' : undefined)
  },
})

/** A directory stands for its workflow files, sorted. */
function workflowsIn(path: string): string[] {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return [path]
  const names = readdirSync(path).filter((name) => /\.(hcl|wf)$/.test(name))
  if (names.length === 0) throw usageError(`${path} holds no .hcl or .wf file`)
  return names.sort().map((name) => join(path, name))
}

async function check(
  io: Io,
  file: string,
  flags: InputFlags,
  { strict, crossCheck }: { strict: boolean; crossCheck: boolean },
): Promise<Checked> {
  const parsed = await readWorkflow(io, file)
  const { workflow, diagnostics } = parsed
  if (!workflow) return { ...parsed, file, issues: diagnostics }
  const isGiven = Object.values(flags).some((value) => value !== undefined && value.length > 0)
  const given = isGiven ? await readGiven(io, flags, workflow) : {}
  const later = validateWorkflow(workflow, { ...given, registry: await runRegistry(io), strict })
  const others = crossCheck ? (await import('../../runbook/cross-check.ts')).crossCheck(workflow.source) : []
  return { ...parsed, file, issues: [...diagnostics, ...later, ...others].sort(byPosition) }
}

function textOf({ file, workflow, issues, omitted }: Checked): string {
  const shown = issuesText(issues, omitted)
  const broken = issues.some(({ level }) => level === 'error')
  if (broken || !workflow) return `${shown}\n`
  const { nodes, edges } = workflow
  return `${shown}${file}: valid (${counted(nodes.length, 'node')}, ${counted(edges.length, 'edge')})\n`
}

function jsonOf(checked: readonly Checked[], issues: readonly Diagnostic[], valid: boolean, summary: object): object {
  const registry = createNodeRegistry()
  const all = checked.flatMap(({ workflow }) => (workflow ? [requirements(workflow, registry)] : []))
  const union = (name: 'inputs' | 'secrets' | 'env' | 'services'): string[] =>
    [...new Set(all.flatMap((each) => each[name]))].sort()
  const requires = {
    inputs: union('inputs'),
    secrets: union('secrets'),
    env: union('env'),
    services: union('services'),
  }
  return {
    formatVersion: 1,
    valid,
    files: checked.map(({ file }) => file),
    issues: issues.map(diagnosticJson),
    summary,
    requires,
  }
}
