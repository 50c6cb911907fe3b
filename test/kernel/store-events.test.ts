import { expect, test } from 'vitest'
import type { NewEvent } from '../../src/kernel/model/event.ts'
import { appendEvents, listEvents } from '../../src/kernel/store/events.ts'
import { describeStores, eventOf } from './support.ts'

const PAGE = { order: 'asc', limit: 1000, details: true } as const

describeStores('events of the store', (open) => {
  test('kernel#89 20 writers: each stream and the scope are numbered without gaps', async () => {
    const { store, scope } = open()
    const mine = scope()
    const write = (events: NewEvent[]): Promise<unknown> => store.database.transaction((tx) => appendEvents(tx, events))
    await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        write([
          eventOf(open(), { scope: mine, runId: `r${i % 2}` }),
          eventOf(open(), { scope: mine, runId: 'r2' }),
          eventOf(open(), { scope: mine, runId: `r${i % 2}` }),
        ]),
      ),
    )
    await expect(
      store.database.transaction(async (tx) => {
        await appendEvents(tx, [eventOf(open(), { scope: mine, runId: 'r0' })])
        throw new Error('undone')
      }),
    ).rejects.toThrow('undone')
    await write([eventOf(open(), { scope: mine, runId: 'r0' })])
    const all = await listEvents(store.database, mine, {}, PAGE)
    expect(all.map(({ position }) => position)).toEqual(all.map((_, i) => i + 1))
    for (const [runId, length] of [
      ['r0', 21],
      ['r1', 20],
      ['r2', 20],
    ] as const) {
      const stream = await listEvents(store.database, mine, { runId }, PAGE)
      expect(stream.map(({ event }) => event.sequence)).toEqual(Array.from({ length }, (_, i) => i + 1))
    }
  })

  test('kernel#90 each selector, category and order; payloads only with details; a follower misses nothing', async () => {
    const { store, scope } = open()
    const mine = scope()
    const ids = { runId: 'r', agentId: 'a', objectiveId: 'o', teamId: 't', projectId: 'p' }
    const event = eventOf(open(), {
      scope: mine,
      ...ids,
      conversationRefs: ['c1', 'c2'],
      payload: { x: 1 },
      usageDelta: { turns: 1 },
    })
    const other = eventOf(open(), {
      scope: mine,
      eventType: 'collaboration.requested',
      severity: 'warning',
      visibility: 'team',
    })
    await store.database.transaction((tx) => appendEvents(tx, [event, other]))
    const list = (filter: object, page: object = {}): ReturnType<typeof listEvents> =>
      listEvents(store.database, mine, filter, { ...PAGE, ...page })
    for (const [name, value] of [...Object.entries(ids), ['conversationId', 'c2']]) {
      expect([name, ...(await list({ [name ?? '']: value })).map((one) => one.event.id)]).toEqual([name, event.id])
    }
    for (const filter of [
      { category: ['activity'] },
      { severity: ['warning'] },
      { visibility: ['team'] },
      { eventType: ['collaboration.requested'] },
    ]) {
      expect((await list(filter)).map((one) => one.event.id)).toEqual([other.id])
    }
    expect((await list({}, { order: 'desc' })).map(({ position }) => position)).toEqual([2, 1])
    expect(await list({}, { after: 1 })).toHaveLength(1)
    const [detailed] = await list({ runId: 'r' })
    expect(detailed).toEqual({
      event: { ...event, sequence: 1, severity: 'info', visibility: 'scope' },
      position: 1,
      detailAvailable: true,
    })
    const [brief] = await list({ runId: 'r' }, { details: false })
    expect(brief).toMatchObject({ detailAvailable: true })
    expect(brief?.event).not.toHaveProperty('payload')
    expect(brief?.event).not.toHaveProperty('usageDelta')
  })
})
