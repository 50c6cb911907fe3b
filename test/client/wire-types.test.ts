import { expectTypeOf, test } from 'vitest'
import type { z } from 'zod'
import type * as graph from '../../src/client/graph-types.ts'
import type * as wire from '../../src/client/types.ts'
import type * as model from '../../src/memory/model.ts'
import type * as requests from '../../src/memory/requests.ts'

/** A shape as JSON carries it: an optional key is absent, never undefined. */
type Json<T> = T extends (infer Item)[]
  ? Json<Item>[]
  : T extends object
    ? { [Key in keyof T]: Json<Exclude<T[Key], undefined>> }
    : T

/** What a caller may send to a schema. */
type Sent<Schema extends z.ZodType> = Json<z.input<Schema>>

// Proven by the type check: at run time these do nothing.

test('records are those of the server', () => {
  expectTypeOf<Json<wire.Workspace>>().toEqualTypeOf<Json<model.Workspace>>()
  expectTypeOf<Json<wire.Collection>>().toEqualTypeOf<Json<model.Collection>>()
  expectTypeOf<Json<wire.ListedMemory>>().toEqualTypeOf<Json<model.Memory>>()
  expectTypeOf<Json<wire.Cell>>().toEqualTypeOf<Json<model.Cell>>()
  expectTypeOf<Json<wire.MemoryHeader>>().toEqualTypeOf<Json<model.MemoryHeader>>()
  expectTypeOf<Json<wire.WatermarkEntry>>().toEqualTypeOf<Json<model.WatermarkEntry>>()
  expectTypeOf<Json<graph.Edge>>().toEqualTypeOf<Json<model.Edge>>()
  expectTypeOf<Json<wire.Pin>>().toEqualTypeOf<Json<model.Pin>>()
  expectTypeOf<Json<wire.Agent>>().toEqualTypeOf<Json<model.Agent>>()
  expectTypeOf<Json<wire.RecallHit>>().toEqualTypeOf<Json<model.RecallHit>>()
  expectTypeOf<Json<wire.RecallResult>>().toEqualTypeOf<Json<model.RecallAnswer>>()
  expectTypeOf<keyof wire.LedgerEntry>().toEqualTypeOf<keyof model.LedgerEntry>()
  expectTypeOf<Json<model.LedgerEntry>>().toExtend<Json<wire.LedgerEntry>>()
})

test('what the client sends, the server takes', () => {
  expectTypeOf<Json<wire.WorkspaceRequest>>().toEqualTypeOf<Sent<typeof requests.workspaceRequest>>()
  expectTypeOf<Json<wire.CollectionRequest>>().toEqualTypeOf<Sent<typeof requests.collectionRequest>>()
  expectTypeOf<Json<wire.ImprintRequest>>().toEqualTypeOf<Sent<typeof requests.imprintRequest>>()
  expectTypeOf<Json<wire.AgentRequest>>().toEqualTypeOf<Sent<typeof requests.agentRequest>>()
  expectTypeOf<Json<wire.PinRequest>>().toEqualTypeOf<Sent<typeof requests.pinRequest>>()
  expectTypeOf<Json<wire.RecallRequest>>().toEqualTypeOf<Sent<typeof requests.recallRequest>>()
  // The watermark goes as a header, and of two names for one thing the client knows one.
  expectTypeOf<Json<wire.UpdateRequest>>().toExtend<Sent<typeof requests.updateRequest>>()
  expectTypeOf<Json<wire.PatchRequest>>().toExtend<Sent<typeof requests.patchRequest>>()
  expectTypeOf<Json<wire.AppendRequest>>().toExtend<Sent<typeof requests.appendRequest>>()
  expectTypeOf<Json<graph.LinkRequest>>().toExtend<Sent<typeof requests.linkRequest>>()
  expectTypeOf<Json<graph.LinkBatchRequest>>().toExtend<Sent<typeof requests.batchRequest>>()
  expectTypeOf<Json<graph.NeighborsRequest>>().toExtend<Sent<typeof requests.neighborsRequest>>()
  expectTypeOf<Json<graph.TraverseRequest>>().toExtend<Sent<typeof requests.traverseRequest>>()
})
