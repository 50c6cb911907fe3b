import { canonicalJson } from '../../base/canonical-json.ts'
import { CodedError } from '../../base/errors.ts'
import { md5, sha256 } from '../../base/hash.ts'
import type { IdSource } from '../../base/ids.ts'
import { BodyError, refuseBad } from '../../http/json-body.ts'
import type { Caller } from '../caller.ts'
import { MemoryError } from '../errors.ts'
import type { ConflictRule } from '../import.ts'
import type { Workspace } from '../model.ts'
import { collectionRequest, imprintRequest } from '../requests.ts'
import { parseWith } from '../routes/route.ts'
import type { MemoryService } from '../service.ts'
import { findCollectionByName } from '../store/collections.ts'
import { findEdgeByTriple } from '../store/edges.ts'
import { findIdUse } from '../store/import.ts'
import { findMemory } from '../store/memories.ts'
import { findTags } from '../store/tags.ts'
import { CONTENT_MAX, TOO_LARGE, type Found, type FoundEdge, type FoundMemory } from './found.ts'

/** Something is here with other content, under the rule `error`. */
export class ImportConflict extends Error {}

/** What became of each; `forgotten` ones were forgotten here and stay so. */
const OUTCOMES = ['added', 'unchanged', 'overwritten', 'skipped', 'forgotten', 'failed'] as const
type Outcome = (typeof OUTCOMES)[number]

export interface ImportSummary {
  memories: Record<Outcome, number>
  edges: Record<Outcome, number>
  collections_added: number
}

export interface ImportOptions {
  /** Part of the ids: what comes from another source has others. */
  source: string
  rule: ConflictRule
  dryRun: boolean
  /** Told of each item that fails; the others go on. */
  fault: (where: string, message: string) => void
}

/** Who brings it in. */
type Importer = Omit<Caller, 'requestId' | 'startedAt' | 'signal'>

/** Side by side, so that they share commits. */
const AT_ONCE = 64
const EDGE_TYPE = 'references'

/**
 * Brings what an importer finds into a workspace, through the service, as the caller. An item's id follows from its key, so
 * what came before is found again: equal content is left alone, other content is a conflict for the rule.
 * @throws ImportConflict under the rule `error`; what the stores throw. Run again, it goes on where it ended.
 */
export async function bringIn(
  parts: { service: MemoryService; ids: IdSource },
  caller: Importer,
  workspace: Workspace,
  items: AsyncIterable<Found>,
  options: ImportOptions,
): Promise<ImportSummary> {
  const run = new BringIn(parts, caller, workspace, options)
  let window: Found[] = []
  for await (const item of items) {
    if (window.length === AT_ONCE || meets(window, item)) {
      await run.all(window)
      window = []
    }
    window.push(item)
  }
  await run.all(window)
  return run.summary
}

/** Whether an item must wait for those before it: Edges for Memories, a key for its first use. */
const meets = (window: readonly Found[], item: Found): boolean =>
  window.some(
    (other) =>
      (item.kind === 'edge') !== (other.kind === 'edge') ||
      (item.kind === 'memory' && other.kind === 'memory' && item.key === other.key),
  )

const none = (): Record<Outcome, number> => ({
  added: 0,
  unchanged: 0,
  overwritten: 0,
  skipped: 0,
  forgotten: 0,
  failed: 0,
})

class BringIn {
  readonly summary: ImportSummary = { memories: none(), edges: none(), collections_added: 0 }
  readonly #service: MemoryService
  readonly #ids: IdSource
  readonly #caller: Importer
  readonly #workspace: Workspace
  readonly #options: ImportOptions
  readonly #collections = new Map<string, Promise<string>>()
  readonly #writers = new Map<string, Promise<void>>()
  /** What a dry run would have added. */
  readonly #foreseen = new Set<string>()

  constructor(
    { service, ids }: { service: MemoryService; ids: IdSource },
    caller: Importer,
    workspace: Workspace,
    options: ImportOptions,
  ) {
    this.#service = service
    this.#ids = ids
    this.#caller = caller
    this.#workspace = workspace
    this.#options = options
  }

  /** @throws the first failure that is not the fault of an item, when all have ended */
  async all(items: readonly Found[]): Promise<void> {
    const outcomes = await Promise.allSettled(items.map((item) => this.#one(item)))
    const failure = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failure) throw failure.reason
  }

  async #one(item: Found): Promise<void> {
    const count = item.kind === 'edge' ? this.summary.edges : this.summary.memories
    try {
      if (item.kind === 'fault') throw new BodyError(item.message)
      count[await (item.kind === 'edge' ? this.#edge(item) : this.#memory(item))]++
    } catch (error) {
      if (!(error instanceof CodedError || error instanceof BodyError)) throw error
      count.failed++
      this.#options.fault(item.where, error.message)
    }
  }

  #request(): Caller {
    const { signal } = new AbortController() // one for all would have many listeners
    return { ...this.#caller, signal, requestId: this.#ids('req_'), startedAt: performance.now() }
  }

  #idOf(key: string): string {
    return `mem_${ulidOf(sha256(JSON.stringify([this.#options.source, this.#workspace.id, key])))}`
  }

  async #memory(item: FoundMemory): Promise<Outcome> {
    refuseBad(item, true)
    if (Buffer.byteLength(item.content) > CONTENT_MAX) throw new BodyError(TOO_LARGE)
    const { metadata } = this.#service.seams
    const id = this.#idOf(item.key)
    const use = await findIdUse(metadata, id)
    if (use && !use.isLive) return 'forgotten'
    if (use) return this.#meet(item, id)
    const fields = { content: item.content, tags: item.tags, ...(item.chunker && { chunker_id: item.chunker }) }
    const request = parseWith(imprintRequest, fields)
    const collectionId = item.collection === undefined ? undefined : await this.#collection(item.collection)
    if (this.#options.dryRun) {
      this.#foreseen.add(id)
      return 'added'
    }
    await this.#admit(item.agentId)
    await this.#service.imprint.run(
      this.#request(),
      this.#workspace,
      { ...request, collection_id: collectionId },
      { memoryId: id, agentId: item.agentId, createdAt: item.createdAt, updatedAt: item.updatedAt },
    )
    return 'added'
  }

  /** The Memory is here already. */
  async #meet({ where, content, tags }: FoundMemory, id: string): Promise<Outcome> {
    const { metadata } = this.#service.seams
    const row = await findMemory(metadata, this.#workspace.id, id)
    const known = (await findTags(metadata, [id])).get(id) ?? {}
    if (row?.content_md5 === md5(content) && canonicalJson(known) === canonicalJson(tags)) return 'unchanged'
    const outcome = this.#settle(where, `Memory ${id} is here already with other content or tags`)
    if (outcome === 'overwritten' && row && !this.#options.dryRun) {
      await this.#admit()
      await this.#service.edits.update(this.#request(), this.#workspace, id, { content, tags }, row.head_watermark)
    }
    return outcome
  }

  #settle(where: string, message: string): 'skipped' | 'overwritten' {
    const { rule } = this.#options
    if (rule === 'error') throw new ImportConflict(`${where}: ${message}`)
    return rule === 'skip' ? 'skipped' : 'overwritten'
  }

  /** By name, made where it is missing. */
  #collection(name: string): Promise<string | undefined> {
    const { seams, workspaces } = this.#service
    const find = async (): Promise<string> => {
      const request = parseWith(collectionRequest, { name })
      const known = await findCollectionByName(seams.metadata, this.#workspace.id, name)
      if (known) return known.id
      this.summary.collections_added++
      if (this.#options.dryRun) return ''
      return (await workspaces.createCollection(this.#request(), this.#workspace.id, request)).id
    }
    return once(this.#collections, name, find)
  }

  /** Registers a writer that is new here. */
  async #admit(agentId = this.#caller.agentId): Promise<void> {
    const claim = { agentId, provider: undefined, proof: undefined }
    await once(this.#writers, agentId, () => this.#service.agents.admit(this.#request(), this.#workspace.id, claim))
  }

  async #edge({ where, from, to, properties }: FoundEdge): Promise<Outcome> {
    this.#service.requireGraph()
    const { seams, links } = this.#service
    const [source, target] = [this.#idOf(from), this.#idOf(to)]
    for (const [id, key] of [[source, from] as const, [target, to] as const]) {
      const isThere = this.#foreseen.has(id) || (await findMemory(seams.metadata, this.#workspace.id, id))
      if (!isThere) throw new BodyError(`there is no Memory of ${JSON.stringify(key)} to link`)
    }
    const known = await findEdgeByTriple(seams.graph ?? seams.metadata, this.#workspace.id, source, target, EDGE_TYPE)
    if (known && canonicalJson(known.properties_json ?? null) === canonicalJson(properties ?? null)) return 'unchanged'
    const outcome = known ? this.#settle(where, `an Edge is here already with other properties`) : 'added'
    if (this.#options.dryRun || outcome === 'skipped') return outcome
    await this.#admit()
    if (known) await links.unlink(this.#request(), this.#workspace.id, known.edge_id)
    try {
      await links.link(this.#request(), this.#workspace.id, {
        source_memory_id: source,
        target_memory_id: target,
        edge_type: EDGE_TYPE,
        properties_json: properties,
      })
    } catch (error) {
      if (error instanceof MemoryError && error.code === 'already_linked_via_synthetic') return 'skipped'
      throw error
    }
    return outcome
  }
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** 128 bits of a hash (hex) in the form of a ULID. */
function ulidOf(hash: string): string {
  let rest = BigInt(`0x${hash.slice(0, 32)}`)
  let text = ''
  for (let i = 0; i < 26; i++, rest >>= 5n) text = CROCKFORD[Number(rest & 31n)] + text
  return text
}

/** The answer for a key: asked for once, also by those that ask meanwhile. */
function once<T>(known: Map<string, Promise<T>>, key: string, ask: () => Promise<T>): Promise<T> {
  const answer = known.get(key) ?? ask()
  known.set(key, answer)
  return answer
}
