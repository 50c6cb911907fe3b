import { readFileSync } from 'node:fs'
import { errorText } from '../../base/errors.ts'
import { DIRECTIONS, GRAPH_FORMATS, renderGraph } from '../../runbook/draw/index.ts'
import type { Overlay } from '../../runbook/draw/picture.ts'
import { writeWhole } from '../../runbook/report-file.ts'
import { defineCommand } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { FILE_ARGUMENT } from '../runbook/flags.ts'
import { loadWorkflow } from '../runbook/load.ts'

export const drawing = defineCommand({
  args: { file: FILE_ARGUMENT },
  flags: {
    format: { value: 'format', choices: GRAPH_FORMATS, default: 'text', help: 'How to draw it' },
    direction: { value: 'way', choices: DIRECTIONS, default: 'TB', help: 'From left to right, or top to bottom' },
    report: { value: 'file', help: 'Colour the nodes by their status in this report of a run' },
    out: { value: 'file', help: 'Write to a file' },
  },
  examples: [
    'graph deploy.hcl',
    'graph deploy.hcl --format mermaid --direction LR',
    'graph deploy.hcl --format svg --report report.json --out deploy.svg',
    'graph stats',
  ],
  async run({ io }, { file, format, direction, report, out }) {
    const { workflow } = await loadWorkflow(io, file)
    const overlay = report === undefined ? {} : { report: readOverlay(report) }
    const drawn = renderGraph(workflow, { format, direction, ...overlay })
    if (out === undefined) {
      io.stdout.write(drawn)
      return
    }
    try {
      writeWhole(out, drawn)
    } catch (error) {
      throw new CliError(EXIT.failure, `cannot write ${out}: ${errorText(error)}`)
    }
  },
})

function readOverlay(file: string): Overlay {
  let report: unknown
  try {
    report = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw usageError(`cannot read the report ${file}: ${errorText(error)}`)
  }
  if (!isOverlay(report)) throw usageError(`${file} is no run report`)
  return report
}

function isOverlay(report: unknown): report is Overlay {
  if (typeof report !== 'object' || report === null || !('nodes' in report) || !('edges' in report)) return false
  const { nodes, edges } = report
  return isListWith(nodes, ['id', 'status']) && isListWith(edges, ['from', 'to', 'state'])
}

const isListWith = (list: unknown, names: readonly string[]): boolean =>
  Array.isArray(list) &&
  list.every((item) => {
    const fields: Record<string, unknown> = { ...item }
    return names.every((name) => typeof fields[name] === 'string')
  })
