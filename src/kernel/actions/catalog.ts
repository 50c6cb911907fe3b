import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as yaml from 'yaml'
import { canonicalJson } from '../../base/canonical-json.ts'
import { errorText } from '../../base/errors.ts'
import { conflict, invalid } from '../errors.ts'
import { skillDefinition, transportOf, type SkillDefinition } from '../model/skill.ts'
import type { SkillCatalog } from '../ports.ts'
import { compileSchema } from './schema.ts'

/** What skills there are, in the memory of this process. Contract: kernel-2.md 1 */

/**
 * A catalog of these definitions, as their authors write them.
 * @throws invalid for one that is none; conflict for two of one id, version and source that differ
 */
export function createSkillCatalog(definitions: readonly unknown[]): SkillCatalog {
  const catalog = new Catalog()
  for (const definition of definitions) catalog.add(definition)
  return catalog
}

class Catalog implements SkillCatalog {
  /** By version, then by source. */
  readonly #skills = new Map<string, Map<string, SkillDefinition>>()

  /** @throws as `createSkillCatalog` */
  add(given: unknown): void {
    const skill = parseSkill(given)
    const version = keyOf(skill.id, skill.version)
    const sources = this.#skills.get(version) ?? new Map<string, SkillDefinition>()
    const identity = skill.source?.identity ?? ''
    const other = sources.get(identity)
    if (other && canonicalJson(other) !== canonicalJson(skill)) {
      throw conflict(`skill ${skill.id} ${skill.version} is there with other content`)
    }
    this.#skills.set(version, sources.set(identity, skill))
  }

  find(id: string, version: string, sourceIdentity?: string): SkillDefinition | undefined {
    const sources = this.#skills.get(keyOf(id, version))
    if (!sources) return undefined
    if (sourceIdentity !== undefined) return sources.get(sourceIdentity)
    if (sources.size > 1) throw invalid(`skill ${id} ${version} comes from several sources: name one`)
    return [...sources.values()][0]
  }
}

const keyOf = (id: string, version: string): string => JSON.stringify([id, version])

/** @throws invalid naming the first place that does not fit */
function parseSkill(given: unknown): SkillDefinition {
  const parsed = skillDefinition.safeParse(given)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw invalid(`skill: ${issue?.path.join('.')}: ${issue?.message}`)
  }
  const skill = parsed.data
  for (const action of Object.values(skill.actions)) {
    const at = `skill ${skill.id}: actions.${action.name}`
    if (!transportOf(skill, action)) throw invalid(`${at}.transport: is required, here or in the skill`)
    try {
      compileSchema(action.inputSchema)
      if (action.outputSchema) compileSchema(action.outputSchema)
    } catch (error) {
      throw invalid(`${at}: ${errorText(error)}`)
    }
  }
  return skill
}

export interface SkillFiles {
  /** Of what can be used. */
  catalog: SkillCatalog
  failures: { file: string; error: string }[]
}

const FILE = /\.(?:json|ya?ml)$/
const MAX_FILES = 1000

/**
 * What stands in a directory of skills: files of one definition each, and folders with a `skill.json`; other folders are
 * passed over. Nothing where there is no such directory. Of two files that contradict each other the first by name counts.
 */
export async function readSkillFiles(directory: string): Promise<SkillFiles> {
  const catalog = new Catalog()
  const failures: SkillFiles['failures'] = []
  const entries = await readdir(directory, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const files = entries
    .filter((entry) => entry.isDirectory() || FILE.test(entry.name))
    .map((entry) => join(directory, entry.name, entry.isDirectory() ? 'skill.json' : '.'))
    .sort()
  for (const file of files.slice(0, MAX_FILES)) {
    try {
      catalog.add(yaml.parse(await readFile(file, 'utf8')))
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') continue
      failures.push({ file, error: errorText(error) })
    }
  }
  return { catalog, failures }
}
