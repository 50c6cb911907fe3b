import * as z from 'zod'
import type { Caller } from '../../memory/caller.ts'
import { invalidInput } from '../../memory/errors.ts'
import type { Workspace } from '../../memory/model.ts'
import {
  appendRequest,
  imprintRequest,
  linkRequest,
  patchRequest,
  tagKeySchema,
  tagRequest,
  updateRequest,
} from '../../memory/requests.ts'
import { parseWith, refuseBadText } from '../../memory/routes/route.ts'
import type { MemoryService } from '../../memory/service.ts'
import { removeTag, upsertTag } from '../../memory/tags.ts'

const recordSchema = z.looseObject({ op: z.string() })
/** What a record tells of the first run, beside its body. */
const RECORDED = [
  'op',
  'memory_id',
  'edge_id',
  'source_memory_id',
  'key',
  'watermark',
  'expected_watermark',
  'ledger_id',
  'agent_id',
  'ts',
]

type Apply = (caller: Caller, record: unknown) => Promise<void>

/**
 * Repeats recorded operations in their order. Ids of the record stand for those that came out here; watermarks of then
 * mean nothing now, so edits go to the head. Contract: memory.md 14, Bulk.
 */
export function createReplay(service: MemoryService, workspace: Workspace): Apply {
  const { id: ws } = workspace
  /** Recorded id -> id here. */
  const ids = new Map<string, string>()

  return async (caller, raw) => {
    refuseBadText(raw)
    const record = parseWith(recordSchema, raw)
    const named = (field: string): string | undefined => {
      const value = record[field]
      return typeof value === 'string' ? value : undefined
    }
    const here = (field: string): string => {
      const id = named(field)
      if (id === undefined) throw invalidInput(`${field} is required`, field)
      return ids.get(id) ?? id
    }
    const remember = (field: string, id: string): void => {
      const recorded = named(field)
      if (recorded !== undefined) ids.set(recorded, id)
    }
    const body = Object.fromEntries(Object.entries(record).filter(([name]) => !RECORDED.includes(name)))
    const head = async (): Promise<string> =>
      (await service.memories.lookup(workspace, here('memory_id'))).head_watermark

    switch (record.op) {
      case 'imprint': {
        const made = await service.imprint.run(caller, workspace, parseWith(imprintRequest, body))
        return remember('memory_id', made.memory_id)
      }
      case 'update':
        await service.edits.update(caller, workspace, here('memory_id'), parseWith(updateRequest, body), await head())
        return
      case 'patch':
        await service.edits.patch(caller, workspace, here('memory_id'), parseWith(patchRequest, body), await head())
        return
      case 'append':
        await service.edits.append(caller, workspace, here('memory_id'), parseWith(appendRequest, body), undefined)
        return
      case 'forget':
        await service.forget.run(caller, ws, here('memory_id'), record['redact_audit'] === true, undefined)
        return
      case 'link': {
        service.requireGraph()
        const source = named('source_memory_id') === undefined ? here('memory_id') : here('source_memory_id')
        const wish = parseWith(linkRequest, { ...body, target_memory_id: here('target_memory_id') })
        const { edge } = await service.links.link(caller, ws, { ...wish, source_memory_id: source })
        return remember('edge_id', edge.edge_id)
      }
      case 'unlink':
        service.requireGraph()
        return service.links.unlink(caller, ws, here('edge_id'))
      case 'tag_set': {
        const key = parseWith(tagKeySchema, record['key'])
        const { value } = parseWith(tagRequest, body)
        return upsertTag(service.mutations, caller, ws, here('memory_id'), key, value)
      }
      case 'tag_delete':
        return removeTag(service.mutations, caller, ws, here('memory_id'), parseWith(tagKeySchema, record['key']))
      default:
        throw invalidInput(`${record.op} cannot be replayed`, 'op')
    }
  }
}
