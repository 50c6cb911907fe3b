import { expect, test } from 'vitest'
import { expectInvalid, expectOk } from '../support/expectations.ts'
import { describeOnBoth } from '../support/memory-api.ts'

const MIB = 1024 * 1024

describeOnBoth('large input', (api) => {
  test('memory#17 a page ends early where its contents are large; the cursor leads to the others', async () => {
    const ws = await api().workspace()
    const path = `/workspaces/${ws}/memories`
    const ids: string[] = []
    // Blank contents have no Cells to embed.
    for (let i = 0; i < 10; i++) ids.unshift(await api().imprint(ws, ' '.repeat(7 * MIB)))
    const idsOf = (memories: { id: string }[]): string[] => memories.map((memory) => memory.id)
    const first = expectOk(await api().call('GET', path))
    expect(idsOf(first.memories)).toEqual(ids.slice(0, 9))
    const last = expectOk(await api().call('GET', `${path}?cursor=${first.next_cursor}`))
    expect(idsOf(last.memories)).toEqual(ids.slice(9))
    expect(last).not.toHaveProperty('next_cursor')
    expect(idsOf(expectOk(await api().call('GET', `${path}?include_content=false`)).memories)).toEqual(ids)
  })

  test('memory#80 a header that would be repeated beyond measure: 400 that says what to do', async () => {
    const ws = await api().workspace({ chunker_id: 'csv' })
    const path = `/workspaces/${ws}/memories`
    const content = `${'h'.repeat(MIB)}\n${'1\n'.repeat(64)}`
    const refused = await api().call('POST', path, { content })
    expectInvalid(refused, 'content')
    expect(refused.body.message).toContain('rows_per_cell')
    const wide = { content, chunker_config: { rows_per_cell: '64' } }
    expect(expectOk(await api().call('POST', path, wide), 201).cells_created).toBe(1)
  })

  test('memory#67 more tags in a filter than a Memory can have', async () => {
    const ws = await api().workspace()
    const id = await api().imprint(ws, 'otter', { tags: { k0: '0', k1: '1' } })
    const filter = async (count: number) => {
      const tags = Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, String(i)]))
      return expectOk(await api().call('POST', `/workspaces/${ws}/recall`, { query: 'otter', filters: { tags } }))
    }
    expect((await filter(2)).results).toMatchObject([{ memory_id: id }])
    expect((await filter(100_000)).results).toEqual([])
  })
})
