import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Memory } from '../../../src/app/memory.ts'
import type { Param } from '../../../src/database/database.ts'
import type { Caller } from '../../../src/memory/caller.ts'
import type { Workspace } from '../../../src/memory/model.ts'
import { createCellSource } from '../../../src/memory/store/cell-source.ts'
import { findCells, insertCells, toCell } from '../../../src/memory/store/cells.ts'
import { insertRows } from '../../../src/memory/store/restore.ts'
import { hasPostgres } from '../../support/postgres.ts'
import { createPlace, type Place } from '../export/place.ts'

const MODEL = 'hash:default'
const caller = (): Caller => ({
  requestId: 'req_1',
  startedAt: 0,
  agentId: 'agent_test',
  signal: new AbortController().signal,
})

describe.each(['sqlite', 'postgres'] as const)('Cells on %s', { skip: !hasPostgres }, (dialect) => {
  let place: Place
  let memory: Memory
  let workspace: Workspace
  beforeAll(async () => {
    place = await createPlace(dialect)
    memory = await place.open()
    workspace = await memory.service.workspaces.create(caller(), { name: 'cells' })
  })
  afterAll(async () => {
    await memory.close()
    await place.remove()
  })

  test('keep their metadata', async () => {
    const { metadata } = memory.service.seams
    const cell = {
      cell_id: memory.ids('cell_'),
      workspace_id: workspace.id,
      memory_id: memory.ids('mem_'),
      seq: 0,
      text: 'rye',
      text_bytes: null,
      text_md5: '',
      agent_id: 'agent_test',
      metadata_json: '{"page":7}',
      embedding_model: null,
      created_at: 0,
    }
    await metadata.transaction((tx) => insertCells(tx, [cell]))
    const [row] = await findCells(metadata, cell.memory_id)
    expect(row).toMatchObject(cell)
    expect(row && toCell({ ...row, text: 'rye' }).metadata_json).toEqual({ page: 7 })
  })

  test('of one change are all told, however many its Memories are', async () => {
    const { metadata, vector, vectors, bodies } = memory.service.seams
    const { memory_id: later } = await memory.service.imprint.run(caller(), workspace, { content: 'later' })
    await metadata.run('UPDATE memory SET change_seq = 5001 WHERE memory_id = $1', [later])
    const blank = await metadata.get<Record<string, Param>>('SELECT * FROM memory WHERE memory_id = $1', [later])
    const ids = Array.from({ length: 1100 }, () => memory.ids('mem_'))
    const rows = ids.map((memory_id) => ({ ...blank, memory_id, cell_count: 0, change_seq: 5000 }))
    await metadata.transaction((tx) => insertRows(tx, 'memory', rows))
    const source = createCellSource(metadata, vector, vectors, bodies)
    const told = async (sinceSeq: number): Promise<{ ids: string[]; seqs: number[] }> => {
      const [found, seqs] = [new Array<string>(), new Array<number>()]
      for await (const { seq, memories } of source.changes(workspace.id, MODEL, sinceSeq)) {
        seqs.push(seq)
        found.push(...memories.map(({ memoryId }) => memoryId))
      }
      return { ids: found.toSorted(), seqs }
    }
    expect(await told(0)).toEqual({ ids: [...ids, later].toSorted(), seqs: [4999, 4999, 5001] })
    expect(await told(4999)).toEqual({ ids: [...ids, later].toSorted(), seqs: [4999, 4999, 5001] })
    expect(await told(5000)).toEqual({ ids: [later], seqs: [5001] })
    expect(await told(5001)).toEqual({ ids: [], seqs: [] })
  })
})
