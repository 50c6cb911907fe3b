import { reportData, reportText } from '../../runbook/report-file.ts'
import type { ReportNode, RunReport } from '../../runbook/run/report.ts'
import type { Io } from '../command.ts'
import { counted, plain } from '../output.ts'
import type { Format } from '../settings.ts'

const EXECUTED: ReadonlySet<string> = new Set(['succeeded', 'failed', 'cancelled', 'simulated'])

/** The report on stdout; its events have been there before when the format is jsonl. Contract: runbook.md 8. */
export async function printReport({ stdout }: Io, format: Format, report: RunReport): Promise<void> {
  if (format === 'jsonl') return
  if (format === 'json') stdout.write(`${reportText(report)}\n`)
  else if (format === 'yaml') stdout.write((await import('../yaml.ts')).toYaml(reportData(report)))
  else stdout.write(textOf(report))
}

function textOf({ workflow, status, durationMs, run, nodes }: RunReport): string {
  const head = `workflow "${plain(workflow.name)}" ${status} in ${durationMs} ms (${run.id})\n`
  const shown = status === 'dry_run' ? nodes.flatMap((node) => withPasses(node)) : nodes
  return (
    head +
    shown
      .filter((node) => EXECUTED.has(node.status))
      .map(nodeText)
      .join('')
  )
}

/** In a dry run what counts is what each pass of a body would have done. */
function withPasses(node: ReportNode, path = ''): ReportNode[] {
  const id = `${path}${node.id}`
  const passes = (node.iterations ?? []).flatMap((pass) =>
    'nodes' in pass ? pass.nodes.flatMap((inner) => withPasses(inner, `${id}[${pass.index}]/`)) : [],
  )
  return [{ ...node, id }, ...passes]
}

function nodeText(node: ReportNode): string {
  const { id, type, status, durationMs = 0, reused, mocked, iterations, output, config, truncated } = node
  const passes = iterations ? ` (${counted(iterations.length, 'iteration')})` : ''
  const remark = `${passes}${reused ? ' (reused)' : ''}${mocked ? ' (mocked)' : ''}`
  const line = `${id} (${type}) ${status} ${durationMs} ms${remark}\n`
  const shown = status === 'simulated' && config !== undefined ? { config, output } : output
  if (truncated) return `${line}  (output above 1 MiB)\n`
  return shown === undefined ? line : `${line}${indented(reportText(shown))}\n`
}

/** JSON escapes control characters of C0, but not those of C1, which steer terminals too. */
const indented = (text: string): string =>
  text
    .replace(/[\x7f-\x9f]/g, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .replace(/^/gm, '  ')
