import { expect, test } from 'vitest'
import { BY_KERNEL, makeChange } from '../../src/kernel/change.ts'
import type { NewEvent } from '../../src/kernel/model/event.ts'
import type { Scope } from '../../src/kernel/model/fields.ts'
import { describeKernels, type OpenKernel, type ScopedApi } from './api.ts'

type Told = Partial<NewEvent> & { eventType: string; summary: string }

const tell = (open: OpenKernel, scope: Scope, ...told: Told[]): Promise<unknown> =>
  makeChange(open.kernel.context, scope, BY_KERNEL, async (change) => {
    for (const event of told)
      change.report(event, { ...BY_KERNEL, ...(event.visibility && { visibility: event.visibility }) })
  })

const summaries = async (api: ScopedApi, query: string): Promise<string[]> => {
  const { status, body } = await api.get(`/activity?${query}`)
  expect([query, status]).toEqual([query, 200])
  return body.items.map(({ summary }: { summary: string }) => summary)
}

describeKernels('activity', (open) => {
  test('kernel#90 the feed of a scope, by each selector, kind, severity, visibility and category', async () => {
    const api = open().api()
    await tell(
      open(),
      api.scope,
      { eventType: 'run.created', summary: 'run', runId: 'r', agentId: 'a', objectiveId: 'o', projectId: 'p' },
      { eventType: 'collaboration.requested', summary: 'team', teamId: 't', severity: 'warning' },
      { eventType: 'message.posted', summary: 'message', conversationRefs: ['c', 'd'], visibility: 'team' },
      { eventType: 'turn.failed', summary: 'turn', runId: 'r', severity: 'error', visibility: 'private' },
    )
    await tell(open(), open().scope(), { eventType: 'run.created', summary: 'elsewhere', runId: 'r' })
    const all = ['run', 'team', 'message', 'turn']
    const selected: Record<string, string[]> = {
      'order=asc': all,
      'order=desc': all.toReversed(),
      '': all.toReversed(),
      'order=asc&runId=r': ['run', 'turn'],
      'agentId=a': ['run'],
      'objectiveId=o': ['run'],
      'projectId=p': ['run'],
      'teamId=t': ['team'],
      'conversationId=c': ['message'],
      'conversationId=d': ['message'],
      'order=asc&eventType=run.created&eventType=turn.failed': ['run', 'turn'],
      'order=asc&eventType=run.created,message.posted': ['run', 'message'],
      'order=asc&severity=warning,error': ['team', 'turn'],
      'visibility=private': ['turn'],
      'order=asc&category=run,turn': ['run', 'turn'],
      'category=activity': ['team'],
      'runId=none': [],
    }
    for (const [query, expected] of Object.entries(selected)) {
      expect([query, await summaries(api, query)]).toEqual([query, expected])
    }
  })

  test('kernel#90 payload, usage and references only with details; which are told of without', async () => {
    const api = open().api()
    await tell(open(), api.scope, {
      eventType: 'objective.created',
      summary: 'made',
      objectiveId: 'o',
      payload: { revision: 1 },
      usageDelta: { turns: 1 },
      conversationRefs: ['c'],
      causationId: 'because',
    })
    const plain = (await api.get('/activity')).body.items[0]
    expect(plain).toEqual({
      id: expect.any(String),
      scope: api.scope,
      sequence: 1,
      eventType: 'objective.created',
      category: 'objective',
      severity: 'info',
      visibility: 'scope',
      objectiveId: 'o',
      actor: { type: 'system', id: 'kernel' },
      actorSource: 'kernel',
      summary: 'made',
      createdAt: open().at(),
      detailAvailable: true,
    })
    expect((await api.get('/activity?includeDetails=true')).body.items[0]).toEqual({
      ...plain,
      payload: { revision: 1 },
      usageDelta: { turns: 1 },
      conversationRefs: ['c'],
      causationId: 'because',
    })
  })

  test('pages go on behind the last item, in both directions', async () => {
    const api = open().api()
    await tell(
      open(),
      api.scope,
      ...Array.from({ length: 5 }, (_, i) => ({ eventType: 'run.created', summary: `${i}` })),
    )
    for (const order of ['asc', 'desc']) {
      const seen: string[] = []
      let next = ''
      for (const hasMore of [true, true, false]) {
        const { body } = await api.get(`/activity?order=${order}&limit=2${next}`)
        expect(body.hasMore).toBe(hasMore)
        seen.push(...body.items.map(({ summary }: { summary: string }) => summary))
        next = `&cursor=${body.nextCursor}`
      }
      const expected = ['0', '1', '2', '3', '4']
      expect(seen).toEqual(order === 'asc' ? expected : expected.toReversed())
    }
  })

  test('kernel#90 order=asc under writers misses nothing and tells nothing twice', async () => {
    const api = open().api()
    const writers = 8
    const each = 10
    const writing = Promise.all(
      Array.from({ length: writers }, async (_, writer) => {
        for (let i = 0; i < each; i++) {
          await tell(open(), api.scope, {
            eventType: 'run.created',
            summary: `${writer}:${i}`,
            runId: `r${writer % 3}`,
          })
        }
      }),
    )
    const seen: string[] = []
    let cursor = ''
    const follow = async (): Promise<void> => {
      const { body } = await api.get(`/activity?order=asc&limit=7${cursor}`)
      expect(body.nextCursor).toEqual(expect.any(String))
      cursor = `&cursor=${body.nextCursor}`
      seen.push(...body.items.map(({ summary }: { summary: string }) => summary))
    }
    let isWriting = true
    const ended = writing.finally(() => (isWriting = false))
    while (isWriting) await follow()
    await ended
    for (let before = -1; before !== seen.length;) {
      before = seen.length
      await follow()
    }
    expect(seen).toHaveLength(writers * each)
    expect(new Set(seen).size).toBe(writers * each)
  })

  test('a follower of an empty feed has a place to go on from; a cursor of another list is refused', async () => {
    const api = open().api()
    const empty = await api.get('/activity?order=asc')
    expect(empty.body).toEqual({ items: [], hasMore: false, nextCursor: expect.any(String) })
    await tell(open(), api.scope, { eventType: 'run.created', summary: 'first' })
    expect(await summaries(api, `order=asc&cursor=${empty.body.nextCursor}`)).toEqual(['first'])
    const other = open().api()
    expect((await other.get(`/activity?order=asc&cursor=${empty.body.nextCursor}`)).status).toBe(400)
    expect((await api.get(`/activity?order=asc&runId=r&cursor=${empty.body.nextCursor}`)).status).toBe(400)
  })
})
