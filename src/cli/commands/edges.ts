import { isMap } from '../../base/json.ts'
import type { BatchEdge } from '../../client/graph-types.ts'
import { LINK_TYPES } from '../choices.ts'
import { defineCommand } from '../command.ts'
import { connectWorkspace } from '../connect.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { parseJson, readText } from '../input.ts'

export const link = defineCommand({
  args: { src: { help: 'Memory the Edge starts from' }, tgt: { help: 'Memory it leads to' } },
  flags: {
    type: { value: 'type', choices: LINK_TYPES, default: 'references', help: 'What the Edge says' },
    properties: { value: 'json', help: 'A JSON object to keep with it' },
  },
  examples: [
    'link mem_01JZ8QK3V5M9T2X7R4N6P0B1CD mem_01JZ8QK3W0J1K2M3N4P5Q6R7S8',
    `link mem_01JZ8QK3V5M9T2X7R4N6P0B1CD mem_01JZ8QK3W0J1K2M3N4P5Q6R7S8 --type supersedes --properties '{"by": "review"}'`,
  ],
  async run(context, { src, tgt, type, properties }) {
    const { client, workspace } = connectWorkspace(context)
    const result = await client.link(workspace, src, {
      target_memory_id: tgt,
      edge_type: type,
      properties_json: properties === undefined ? undefined : parseObject('--properties', properties),
    })
    await context.output.answer(result, () => [[result.edge.edge_id, `${src} ${type} ${tgt}`]])
  },
})

export const unlink = defineCommand({
  args: { edge: { help: 'Edge id (edg_…)' } },
  examples: ['unlink edg_01JZ8QK3V5M9T2X7R4N6P0B1CD'],
  async run(context, { edge }) {
    const { client, workspace } = connectWorkspace(context)
    await client.unlink(workspace, edge)
    context.output.done(edge, 'unlinked')
  },
})

export const linkBatch = defineCommand({
  args: { file: { help: 'File of the Edges; - is standard input' } },
  notes:
    'The file is a JSON list of {"source_memory_id", "target_memory_id", "edge_type", "properties_json"?}, or one such\n' +
    'object a line. Rows succeed or fail alone; if any failed, the exit code is 4.',
  examples: ['link-batch edges.json', 'jq -c .edges[] export.json | mem link-batch -'],
  async run(context, { file }) {
    const { client, workspace } = connectWorkspace(context)
    const result = await client.linkBatch(workspace, { edges: parseEdges(await readText(context.io, file)) })
    await context.output.list(result, result.results, (row) => [
      row.edge_id ?? `row ${row.index}`,
      row.status,
      row.error,
    ])
    if (result.failed > 0) {
      throw new CliError(EXIT.failure, `${result.failed} of ${result.failed + result.ok} Edges were not made`)
    }
  },
})

/** A JSON list or object, else JSON lines. What the rows hold is the server's to judge. */
function parseEdges(text: string): BatchEdge[] {
  const rows = text.trimStart().startsWith('[')
    ? parseJson('the file', text)
    : text.split('\n').flatMap((line, i) => (line.trim() === '' ? [] : [parseJson(`line ${i + 1}`, line)]))
  const isEdges = (value: unknown): value is BatchEdge[] => Array.isArray(value) && value.every(isMap)
  if (!isEdges(rows)) throw usageError('the file must hold JSON objects, one an Edge')
  return rows
}

function parseObject(what: string, text: string): Record<string, unknown> {
  const value = parseJson(what, text)
  if (!isMap(value)) throw usageError(`${what} must be a JSON object`)
  return value
}
