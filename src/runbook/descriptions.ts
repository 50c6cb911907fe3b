import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import { packageRoot } from '../base/package-root.ts'
import { BUILT_IN_TYPES, builtInType, type Category, type Effects } from './node-types.ts'
import type { Schema } from './schema.ts'

/** A field of a form; it agrees with the property of the input schema. */
export interface DescriptionField {
  readonly key: string
  readonly type: string
  readonly label: string
  readonly hint?: string
  readonly required?: boolean
  readonly default?: unknown
  readonly options?: readonly unknown[]
  readonly min?: number
  readonly max?: number
  readonly rows?: number
  readonly sensitive?: boolean
}

/** `embedded_nodes/<type>.yaml`. Contract: runbook.md 7. */
export interface NodeDescription {
  readonly name: string
  readonly displayName: string
  readonly category: Category
  readonly description: string
  readonly icon?: string
  readonly aliases?: readonly string[]
  readonly branches?: readonly string[] | { readonly dynamic: string }
  readonly executor: 'always' | 'in-cluster' | 'trigger' | 'none'
  readonly effects: Effects
  readonly inputSchema: Schema
  readonly outputSchema: Schema
  readonly sections: readonly {
    readonly title: string
    readonly collapsible?: boolean
    readonly defaultExpanded?: boolean
    readonly fields: readonly DescriptionField[]
  }[]
  readonly examples: readonly {
    readonly name: string
    readonly description: string
    readonly config: Readonly<Record<string, unknown>>
  }[]
}

/** Types that have a description: all but the orchestrator's. */
export const DESCRIBED_TYPES: readonly string[] = BUILT_IN_TYPES.filter(
  ({ category }) => category !== 'orchestrator',
).map(({ type }) => type)

/** The description of a type, by its name or an alias; undefined when there is none. The files are the program's own. */
export async function nodeDescription(name: string): Promise<NodeDescription | undefined> {
  const type = builtInType(name)?.type
  if (type === undefined || !DESCRIBED_TYPES.includes(type)) return undefined
  const description: NodeDescription = parse(
    await readFile(join(packageRoot, 'embedded_nodes', `${type}.yaml`), 'utf8'),
  )
  return description
}
