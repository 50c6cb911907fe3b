import { existsSync } from 'node:fs'
import { createMemory } from '../../app/memory.ts'
import { systemClock } from '../../base/clock.ts'
import { loadConfig, type Config } from '../../config/load.ts'
import { readChains, readExport } from '../../memory/export/read.ts'
import { foresee, restore, type RestoreSummary } from '../../memory/export/restore.ts'
import { CONFLICT_RULES } from '../../memory/import.ts'
import { bringIn, type ImportSummary } from '../../memory/importers/bring-in.ts'
import type { Found } from '../../memory/importers/found.ts'
import { readMarkdown } from '../../memory/importers/markdown.ts'
import { readMem0 } from '../../memory/importers/mem0.ts'
import { readServerMemory } from '../../memory/importers/server-memory.ts'
import type { Seams } from '../../memory/seams.ts'
import { findWorkspace } from '../../memory/store/workspaces.ts'
import { letYoungGenerationGrow } from '../collector.ts'
import { defineCommand, type Context } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { counted, type Row } from '../output.ts'
import { CONFIG_FLAG, DATA_DIR_FLAG } from '../server-flags.ts'
import { requireDatabase } from '../stores.ts'
import { readStream } from '../streams.ts'
import { chosenWorkspaces, explained } from '../transfer.ts'

const SOURCES = ['mem', 'server-memory', 'mem0', 'markdown'] as const
type Rule = (typeof CONFLICT_RULES)[number]

export const importFile = defineCommand({
  args: { file: { help: 'File, unpacked when its name ends in .gz; - is standard input; for markdown a folder' } },
  flags: {
    ...CONFIG_FLAG,
    ...DATA_DIR_FLAG,
    from: {
      value: 'source',
      choices: SOURCES,
      default: 'mem',
      help: 'What wrote it',
    },
    workspace: { value: 'ws', short: 'w', repeat: true, help: 'Of an export only this one; else where to put it' },
    conflict: {
      value: 'rule',
      choices: CONFLICT_RULES,
      help: 'For what is here with other content (of an export: error, else: skip)',
    },
    'dry-run': { help: 'Tell what would happen, and write nothing' },
  },
  notes:
    'Brings back what `mem export` wrote, or takes over the memories of another program. What is here already is found ' +
    'again, so importing twice adds nothing, and an import that was cut off is simply run again. Opens the stores ' +
    'directly, so it works beside a running server and without one. Exit code 4 when something could not be brought in.',
  examples: [
    'import mem.jsonl.gz --data-dir /var/lib/mem',
    'import memory.jsonl --from server-memory -w ws_01...',
    'import memories.json --from mem0 -w ws_01... --dry-run',
    'import ./notes --from markdown -w ws_01... --conflict overwrite',
  ],
  async run(context, { file, from, workspace, conflict, 'dry-run': dryRun = false, ...flags }) {
    const config = loadConfig({ flags, env: context.io.env })
    letYoungGenerationGrow()
    const only = chosenWorkspaces(context, workspace)
    const work =
      from === 'mem'
        ? importExport(context, config, file, { rule: conflict ?? 'error', only: only && new Set(only) }, dryRun)
        : takeOver(context, config, { file, from, workspace, rule: conflict ?? 'skip', dryRun })
    await explained(work, file)
  },
})

async function importExport(
  { io, output }: Context,
  config: Config,
  file: string,
  options: { rule: Rule; only: ReadonlySet<string> | undefined },
  dryRun: boolean,
): Promise<void> {
  if (file === '-' && options.rule === 'overwrite') {
    throw usageError('--conflict overwrite reads the file twice, and standard input comes once', 'Name a file.')
  }
  const bytes = () => readStream(io, file)
  const { metadata } = config.stores
  const isThere = metadata.driver !== 'sqlite' || existsSync(metadata.dsn)
  // A file is read to its end before anything is replaced: one that is broken changes nothing.
  const isThorough = dryRun || options.rule === 'overwrite'
  const look = (seams?: Seams) => foresee(seams, (isThorough ? readExport : readChains)(bytes()), options)
  // Nor does one that cannot be read make a store.
  const foreseenAlone = isThere || file === '-' ? undefined : await look()
  const memory = dryRun && !isThere ? undefined : await createMemory(config, systemClock)
  try {
    const { seams, embedding } = memory?.service ?? {}
    const foreseen = foreseenAlone ?? (dryRun || file !== '-' ? await look(seams) : undefined)
    const summary =
      dryRun || !seams || !embedding || !memory
        ? foreseen
        : await restore(
            { seams, embedding, clock: systemClock, holder: memory.ids('proc_') },
            readExport(bytes()),
            options,
          )
    if (!summary) throw new Error('either of them was done')
    await output.answer({ dry_run: dryRun, ...summary }, () => rowsOf(file, summary, dryRun))
    if (summary.queued_cells > 0) {
      output.note(`${counted(summary.queued_cells, 'Cell')} get vectors of another provider once a server runs`)
    }
  } finally {
    await memory?.close()
  }
}

const would = (dryRun: boolean): string => (dryRun ? 'would be ' : '')

function rowsOf(file: string, { workspaces, records }: RestoreSummary, dryRun: boolean): Row[] {
  const fates = Object.entries(workspaces).filter(([, n]) => n > 0)
  const told = fates.map(([fate, n]) => `${counted(n, 'workspace')} ${would(dryRun)}${fate}`)
  const { memory, version, edge, ledger } = records
  return [
    [file, told.join(', ') || 'nothing in it'],
    ['', `Memories: ${memory}`, `versions: ${version}`, `Edges: ${edge}`, `ledger entries: ${ledger}`],
  ].slice(0, workspaces.imported + workspaces.overwritten > 0 ? 2 : 1)
}

interface TakeOver {
  file: string
  from: Exclude<(typeof SOURCES)[number], 'mem'>
  workspace: readonly string[]
  rule: Rule
  dryRun: boolean
}

async function takeOver(
  context: Context,
  config: Config,
  { file, from, workspace, rule, dryRun }: TakeOver,
): Promise<void> {
  const { io, output, settings } = context
  const [target = settings.workspace, second] = workspace
  if (target === undefined || second !== undefined) {
    throw usageError('this needs one workspace to put it into', '`mem workspaces create --name notes` makes one.')
  }
  requireDatabase(config)
  const memory = await createMemory(config, systemClock)
  try {
    const { service } = memory
    const place = await findWorkspace(service.seams.metadata, target)
    if (!place) throw new CliError(EXIT.notFound, `workspace ${target} does not exist here`)
    const caller = { agentId: settings.agentId }
    const fault = (where: string, message: string): unknown => io.stderr.write(`${where}: ${message}\n`)
    const options = { source: from, rule, dryRun, fault }
    const summary = await bringIn(memory, caller, place, itemsOf(io, from, file), options)
    await output.answer({ dry_run: dryRun, ...summary }, () => summaryRows(file, summary, dryRun))
    const failed = summary.memories.failed + summary.edges.failed
    if (failed > 0) {
      throw new CliError(
        EXIT.failure,
        `${failed} could not be brought in`,
        'Correct them and run it again: it adds the rest.',
      )
    }
  } finally {
    await memory.close()
  }
}

function itemsOf(io: Context['io'], from: TakeOver['from'], file: string): AsyncIterable<Found> {
  if (from === 'markdown') return readMarkdown(file)
  const bytes = readStream(io, file)
  return from === 'mem0' ? readMem0(bytes) : readServerMemory(bytes)
}

function summaryRows(file: string, { memories, edges }: ImportSummary, dryRun: boolean): Row[] {
  const told = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .filter(([, n]) => n > 0)
      .map(([outcome, n]) => `${n} ${would(dryRun)}${outcome}`)
      .join(', ') || 'none'
  return [
    [file, `Memories: ${told(memories)}`],
    ['', `Edges: ${told(edges)}`],
  ]
}
