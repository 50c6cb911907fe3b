import { expect, test } from 'vitest'
import { openDatabase } from '../../src/database/open.ts'
import { followEntries, recentEntries } from '../../src/memory/activity.ts'
import { describeOnBoth } from '../support/memory-api.ts'

describeOnBoth('activity of all workspaces', (api) => {
  const ledger = () => openDatabase(api().address)

  test('pages of the newest entries, each entry once, whatever workspace it is of', async () => {
    const [a, b] = [await api().workspace(), await api().workspace()]
    for (let i = 0; i < 5; i++) await api().imprint(i % 2 ? a : b, `note ${i}`)
    const db = ledger()
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await recentEntries(db, {}, 3, cursor)
      seen.push(...page.entries.map((entry) => entry.ledger_id))
      cursor = page.next_cursor
    } while (cursor !== undefined)
    expect(seen).toEqual(seen.toSorted().toReversed())
    expect(new Set(seen).size).toBe(seen.length)
    const { entries } = await recentEntries(db, { ops: ['imprint'], agentId: 'agent_test' }, 100)
    expect(entries).toHaveLength(5)
    expect(new Set(entries.map((entry) => entry.workspace_id))).toEqual(new Set([a, b]))
    await db.close()
  })

  test('since and until are bounds of time, both included', async () => {
    const db = ledger()
    const all = (await recentEntries(db, {}, 100)).entries
    const times = all.map((entry) => Date.parse(entry.ts))
    const [since = 0, until = 0] = [times.at(-2), times[1]]
    const { entries } = await recentEntries(db, { since, until }, 100)
    expect(entries).toEqual(all.filter((entry) => Date.parse(entry.ts) >= since && Date.parse(entry.ts) <= until))
    await db.close()
  })

  test('a follower gets what is new, oldest first and once', async () => {
    const db = ledger()
    const next = followEntries(db)
    expect(await next()).toEqual([])
    const ws = await api().workspace()
    const id = await api().imprint(ws, 'x')
    const fresh = await next()
    expect(fresh.map(({ op, target }) => [op, target])).toEqual([
      ['workspace_create', ws],
      ['agent_register', 'agent_test'],
      ['imprint', id],
    ])
    expect(await next()).toEqual([])
    await db.close()
  })
})
