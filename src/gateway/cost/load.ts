import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import * as z from 'zod'
import { errorText } from '../../base/errors.ts'
import { packageRoot } from '../../base/package-root.ts'
import { ConfigError } from '../../config/errors.ts'
import { describeFault } from '../../http/validation.ts'
import { type ModelRow, ModelTable, modelTableSchema, overridingRow } from './model-table.ts'

const SHIPPED = join(packageRoot, 'data', 'models.yaml')

/** Which of two rows of one name is meant, nobody could tell. */
const overridingRows = z.array(overridingRow).superRefine((rows, context) => {
  const names = rows.map(({ provider, model }) => `${provider} ${model}`)
  for (const [i, name] of names.entries()) {
    const first = names.indexOf(name)
    if (first < i) context.addIssue({ code: 'custom', path: [i], message: `names ${name} again, as ${first} does` })
  }
})
const priceFileSchema = z.object({ models: overridingRows })

/**
 * The model table in force: `gateway.prices` over `gateway.price_file` over the shipped one, row by row; a row there that
 * tells no abilities has those that its model has without it. Contract: gateway.md 2.5.
 * @throws ConfigError naming the file and what is wrong in it
 */
export function loadModelTable({ prices, priceFile }: { prices: readonly object[]; priceFile?: string | undefined }) {
  const { version, models } = readShipped()
  const shipped = new ModelTable(version, () => [models()])
  const given = priceFile === undefined ? [] : read('gateway.price_file', priceFile, priceFileSchema).models
  const filed = given.map((row) => over(shipped, row))
  const inFile = new ModelTable(version, () => [filed, models()])
  const named = checked('gateway.prices', 'gateway.prices', overridingRows, prices).map((row) => over(inFile, row))
  if (filed.length + named.length === 0) return shipped
  return new ModelTable(`${version}+${digest([filed, named])}`, () => [named, filed, models()])
}

type Given = z.output<typeof overridingRow>

function over(table: ModelTable, row: Given): ModelRow {
  const {
    usd_per_million: _,
    tiers: __,
    usd_per_request: ___,
    ...abilities
  } = table.find(row.provider, row.model) ?? {}
  return { sampling: true, reasoning: 'none', ...abilities, ...row }
}

/** Tells tables apart whose overrides differ: usage records name the one that priced them. */
const digest = (layers: readonly (readonly ModelRow[])[]): string =>
  createHash('sha256')
    .update(JSON.stringify(layers, (_, value: unknown) => (typeof value === 'bigint' ? `${value}` : value)))
    .digest('hex')
    .slice(0, 8)

/** It is YAML with a line of JSON for each row: parsed as YAML it would take 160 ms. Its rows are read when they are needed. */
function readShipped(): { version: string; models: () => readonly ModelRow[] } {
  const text = readFileSync(SHIPPED, 'utf8')
  const head = (name: string): string | undefined => new RegExp(`^${name}: (.+)$`, 'm').exec(text)?.[1]
  const version = head('version')
  if (version === undefined) throw new Error(`${SHIPPED} tells no version`)
  let rows: readonly ModelRow[] | undefined
  const readRows = (): readonly ModelRow[] => {
    const models = text.split('\n').flatMap((line) => (line.startsWith('  - ') ? [JSON.parse(line.slice(4))] : []))
    return modelTableSchema.parse({ schema: Number(head('schema')), version, models }).models
  }
  return { version, models: () => (rows ??= readRows()) }
}

function read<T>(key: string, file: string, schema: z.ZodType<T>): T {
  let content: unknown
  try {
    content = parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new ConfigError(key, `${key}: ${file} cannot be read as YAML: ${errorText(error)}`)
  }
  return checked(key, `${key}: ${file}`, schema, content)
}

function checked<T>(key: string, where: string, schema: z.ZodType<T>, content: unknown): T {
  const { success, data, error } = schema.safeParse(content)
  if (success) return data
  throw new ConfigError(key, `${where}: ${describeFault(error, content).message}`)
}
