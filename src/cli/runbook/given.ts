import { existsSync, readFileSync } from 'node:fs'
import { errorText } from '../../base/errors.ts'
import { didYouMean } from '../../runbook/hcl/diagnostics.ts'
import { fromJson, parseJson } from '../../runbook/hcl/json.ts'
import { isMap, type Value } from '../../runbook/hcl/values.ts'
import type { Workflow } from '../../runbook/model.ts'
import { builtInType } from '../../runbook/node-types.ts'
import type { Io } from '../command.ts'
import { usageError } from '../exit.ts'
import { parsePairs, readText } from '../input.ts'
import type { InputFlags } from './flags.ts'
import { STANDARD_INPUT } from './load.ts'

/** What the flags give to a workflow. */
export interface Given {
  readonly inputs: Readonly<Record<string, Value>>
  readonly vars: Readonly<Record<string, Value>>
  readonly triggerData?: unknown
  readonly trigger?: string
  readonly secrets: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Reads the input flags; whether inputs fit their types is the validation's to say. @throws CliError */
export async function readGiven(io: Io, flags: InputFlags, workflow: Workflow): Promise<Given> {
  const { trigger } = flags
  if (trigger !== undefined) requireTrigger(workflow, trigger)
  if (flags['trigger-data'] === '-' && workflow.file === STANDARD_INPUT)
    throw usageError('RB605: --trigger-data - and the workflow cannot both come from standard input')
  const triggerData = flags['trigger-data'] === undefined ? undefined : await readData(io, flags['trigger-data'])
  return {
    inputs: await readInputs(flags, workflow),
    vars: valuesOf('var', flags.var, () => true),
    ...(triggerData !== undefined && { triggerData }),
    ...(trigger !== undefined && { trigger }),
    secrets: Object.fromEntries(Object.entries(parsePairs('secret', flags.secret) ?? {}).map(readSecret(io))),
    env: Object.fromEntries(flags.env.map((name) => [name, io.env[name]])),
  }
}

/** Flags of which one alone can be meant. @throws CliError */
export function exclusive<Name extends string>(
  flags: Readonly<Partial<Record<Name, unknown>>>,
  one: Name,
  other: Name,
): void {
  if (flags[one] !== undefined && flags[other] !== undefined) throw usageError(`give --${one} or --${other}, not both`)
}

/** @throws CliError (RB610) */
export function requireNode({ nodes }: Workflow, flag: string, id: string): void {
  const ids = nodes.map((node) => node.id)
  if (!ids.includes(id)) throw usageError(`RB610: --${flag}: unknown node "${id}"`, didYouMean(id, ids).hint)
}

function requireTrigger(workflow: Workflow, id: string): void {
  requireNode(workflow, 'trigger', id)
  const triggers = workflow.nodes.filter(({ type }) => builtInType(type)?.category === 'trigger')
  if (triggers.some((node) => node.id === id)) return
  const known = triggers.map((node) => node.id).join(', ')
  throw usageError(
    `RB610: --trigger: "${id}" is no trigger`,
    known === '' ? 'The workflow has none.' : `Triggers: ${known}`,
  )
}

async function readInputs(flags: InputFlags, { inputs }: Workflow): Promise<Record<string, Value>> {
  const given: Record<string, Value> = {}
  for (const file of flags['input-file']) Object.assign(given, await readMap(file))
  const isText = (name: string): boolean => inputs.get(name)?.type.kind === 'string'
  return { ...given, ...valuesOf('input', flags.input, (name) => !isText(name)) }
}

/** Values are JSON where they parse as such and may be, text otherwise. */
function valuesOf(flag: string, pairs: readonly string[], mayBeJson: (name: string) => boolean): Record<string, Value> {
  const texts = Object.entries(parsePairs(flag, pairs) ?? {})
  const valueOf = (name: string, text: string): Value => {
    const value = mayBeJson(name) ? json(text) : undefined
    return value === undefined ? text : value
  }
  return Object.fromEntries(texts.map(([name, text]) => [name, valueOf(name, text)]))
}

function json(text: string): Value | undefined {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

async function readMap(file: string): Promise<Readonly<Record<string, Value>>> {
  const text = readFile('RB601: --input-file', file)
  const value = json(text) ?? fromJson(await yaml(file, text))
  if (isMap(value)) return value
  throw usageError(`RB601: --input-file ${file} holds no map of inputs`)
}

async function yaml(file: string, text: string): Promise<unknown> {
  const { fromYaml } = await import('../yaml.ts')
  try {
    return fromYaml(text)
  } catch (error) {
    throw usageError(`RB601: --input-file ${file} is neither JSON nor YAML: ${errorText(error)}`)
  }
}

function readFile(what: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw usageError(`${what}: cannot read ${file}: ${errorText(error)}`)
  }
}

/** JSON, the name of a file with JSON, or `-`. */
async function readData(io: Io, source: string): Promise<Value> {
  const direct = source === '-' ? undefined : json(source)
  if (direct !== undefined) return direct
  if (source !== '-' && !existsSync(source)) {
    throw usageError(`RB605: --trigger-data '${source}' is neither JSON nor a file`)
  }
  const data = json(await readText(io, source))
  if (data === undefined) throw usageError(`RB605: the trigger data in ${source} is not JSON`)
  return data
}

const readSecret =
  ({ env }: Io) =>
  ([name, source]: [string, string]): [string, string] => {
    const [, kind, place = ''] = /^(env|file):(.+)$/s.exec(source) ?? []
    if (kind === 'file') return [name, readFile(`RB606: secret "${name}"`, place).replace(/\r?\n$/, '')]
    const value = kind === 'env' ? env[place] : undefined
    if (value !== undefined) return [name, value]
    if (kind === 'env') throw usageError(`RB606: secret "${name}": environment variable ${place} is not set`)
    throw usageError(`--secret '${name}=...' must name its source`, `${name}=env:NAME or ${name}=file:PATH`)
  }

/** Outputs by node id, of `--mock ID=FILE`. @throws CliError */
export function readMocks(workflow: Workflow, pairs: readonly string[]): Record<string, Value> {
  const files = Object.entries(parsePairs('mock', pairs) ?? {})
  return Object.fromEntries(
    files.map(([id, file]) => {
      requireNode(workflow, 'mock', id)
      const output = json(readFile(`--mock ${id}`, file))
      if (output === undefined) throw usageError(`--mock ${id}: ${file} is not JSON`)
      return [id, output]
    }),
  )
}
