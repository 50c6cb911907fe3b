import fc from 'fast-check'
import type { Memory } from '../../../src/app/memory.ts'
import { CodedError } from '../../../src/base/errors.ts'
import type { Caller } from '../../../src/memory/caller.ts'
import { clientEdgeType } from '../../../src/memory/requests.ts'
import { upsertTag } from '../../../src/memory/tags.ts'

/** What happens in a store; the number tells which of the workspaces, Memories, … it happens to. */
const text = fc
  .string({ unit: 'binary', maxLength: 60 })
  .map((value) => value.replaceAll('\0', ' '))
  .filter((value) => Buffer.from(value).toString() === value)
const which = fc.nat(50)
const step = fc.oneof(
  fc.record({ op: fc.constant('workspace' as const), text, which }),
  fc.record({ op: fc.constant('deleteWorkspace' as const), which }),
  fc.record({ op: fc.constant('collection' as const), text, which }),
  fc.record({ op: fc.constant('pin' as const), text, which }),
  fc.record({ op: fc.constant('agent' as const), text, which }),
  { weight: 6, arbitrary: fc.record({ op: fc.constant('imprint' as const), text, which, tag: text }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('update' as const), text, which }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('append' as const), text, which }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('tag' as const), text, which }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('link' as const), which, other: which, text }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('forget' as const), which, redact: fc.boolean() }) },
)
export type Step = typeof step extends fc.Arbitrary<infer T> ? T : never

export const stories = fc.array(step, { minLength: 5, maxLength: 40 })

/** Lets it happen; what the service refuses does not happen. */
export async function live({ service, ids }: Memory, steps: readonly Step[]): Promise<string[]> {
  const signal = new AbortController().signal
  const caller = (): Caller => ({
    requestId: ids('req_'),
    startedAt: performance.now(),
    agentId: 'agent_story',
    ip: '127.0.0.1',
    signal,
  })
  const workspaces = [(await service.workspaces.create(caller(), { name: 'first', meta: { '7': 1, a: [null] } })).id]
  const memories: { id: string; ws: string }[] = []
  const collections: string[] = []
  const one = async (each: Step): Promise<void> => {
    const ws = workspaces[each.which % workspaces.length] ?? ''
    const memory = memories[each.which % Math.max(memories.length, 1)]
    const workspace = await service.requireWorkspace(memory && 'text' in each && each.op !== 'imprint' ? memory.ws : ws)
    switch (each.op) {
      case 'workspace':
        workspaces.push((await service.workspaces.create(caller(), { name: each.text || 'x', region: each.text })).id)
        return
      case 'deleteWorkspace':
        await service.workspaces.delete(caller(), ws)
        return
      case 'collection':
        collections.push((await service.workspaces.createCollection(caller(), ws, { name: each.text })).id)
        return
      case 'pin': {
        const pin = { query: each.text, mode: 'hybrid' as const, k: 10, label: each.text }
        await service.workspaces.createPin(caller(), ws, pin, undefined)
        return
      }
      case 'agent':
        await service.agents.register(caller(), ws, {
          agent_id: `agent_${each.text}`,
          identity_provider: 'opaque',
          capabilities: { [each.text]: each.which, __proto__: null },
        })
        return
      case 'imprint': {
        const request = {
          content: each.text,
          tags: { [each.tag]: each.text, 3: '' },
          collection_id: collections[each.which],
        }
        const { memory_id: id } = await service.imprint.run(caller(), await service.requireWorkspace(ws), request)
        memories.push({ id, ws })
        return
      }
      case 'tag':
        if (memory) await upsertTag(service.mutations, caller(), memory.ws, memory.id, each.text, each.text)
        return
      case 'link': {
        const other = memories[each.other % Math.max(memories.length, 1)]
        const types = clientEdgeType.options
        if (memory && other) {
          await service.links.link(caller(), memory.ws, {
            source_memory_id: memory.id,
            target_memory_id: other.id,
            edge_type: types[each.which % types.length] ?? '',
            properties_json: { [each.text]: each.text },
          })
        }
        return
      }
      case 'forget':
        if (memory) await service.forget.run(caller(), memory.ws, memory.id, each.redact, undefined)
        return
      case 'update':
      case 'append': {
        if (!memory) return
        const { head_watermark: head } = await service.memories.lookup(workspace, memory.id)
        const request = { content: each.text }
        if (each.op === 'update') await service.edits.update(caller(), workspace, memory.id, request, head)
        else await service.edits.append(caller(), workspace, memory.id, request, head)
      }
    }
  }
  for (const each of steps) {
    try {
      await one(each)
    } catch (error) {
      if (!(error instanceof CodedError)) throw error
    }
  }
  return workspaces
}
