import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { toTimestamp } from '../../../src/base/clock.ts'
import { findTags } from '../../../src/memory/store/tags.ts'
import { createPlace, exported, verified, within, type Place } from '../../memory/export/place.ts'
import { live } from '../../memory/export/story.ts'
import { runCli } from '../run-cli.ts'

let place: Place
let ws: string
beforeEach(async () => {
  place = await createPlace()
  ;[ws = ''] = await within(place, (memory) => live(memory, []))
})
afterEach(() => place.remove())

const write = (name: string, text: string): string => {
  const path = join(place.directory, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  return path
}
const lines = (...items: unknown[]): string => items.map((item) => `${JSON.stringify(item)}\n`).join('')

async function bring(from: string, path: string, ...flags: string[]) {
  const { code, stdout, stderr } = await runCli(['import', path, '--from', from, '-w', ws, '-o', 'json', ...flags], {
    env: place.env,
  })
  return { code, stderr, summary: stdout === '' ? undefined : JSON.parse(stdout) }
}

interface Seen {
  content: string
  tags: Record<string, string>
  collection: string | undefined
  writer: string
  times: string[]
}

/** What the workspace holds, by content; Edges as `source > target properties`. */
const seen = (): Promise<{ memories: Seen[]; edges: string[] }> =>
  within(place, async ({ service }) => {
    const { metadata } = service.seams
    const workspace = await service.requireWorkspace(ws)
    const { items } = await service.memories.list(workspace, undefined, true, 100, undefined)
    const names = new Map(
      (await metadata.all<{ collection_id: string; name: string }>('SELECT * FROM collection')).map((row) => [
        row.collection_id,
        row.name,
      ]),
    )
    const tags = await findTags(
      metadata,
      items.map(({ id }) => id),
    )
    const memories = items.map((memory) => ({
      content: memory.content ?? '',
      tags: tags.get(memory.id) ?? {},
      collection: names.get(memory.collection_id ?? ''),
      writer: memory.written_by_agent_id,
      times: [memory.created_at, memory.updated_at],
    }))
    const firstLine = (id: string): string =>
      items
        .find((memory) => memory.id === id)
        ?.content?.split('\n')[0]
        ?.replace(/^# /, '') ?? ''
    const edges = await metadata.all<{ source_memory_id: string; target_memory_id: string; properties_json: string }>(
      'SELECT * FROM edge',
    )
    return {
      memories: memories.toSorted((a, b) => (a.content < b.content ? -1 : 1)),
      edges: edges
        .map(
          (edge) => `${firstLine(edge.source_memory_id)} > ${firstLine(edge.target_memory_id)} ${edge.properties_json}`,
        )
        .sort(),
    }
  })

/** What was asked for and refused moves an agent's `last_seen_at`, and so the digest at the end. */
const withoutAgents = (text: string): string[] =>
  text.split('\n').filter((line) => !/^{"type":"(agent|end)"/.test(line))

const entity = (name: string, ...observations: string[]) => ({
  type: 'entity',
  name,
  entityType: 'person',
  observations,
})
const relation = (from: string, relationType: string, to: string) => ({ type: 'relation', from, to, relationType })

test('many at once bring no warning of the runtime onto the terminal', async () => {
  const warnings: string[] = []
  const listen = ({ message }: Error): unknown => warnings.push(message)
  process.on('warning', listen)
  const entities = Array.from({ length: 70 }, (_, i) => entity(`n${i}`, 'Likes rye.'))
  const { summary } = await bring('server-memory', write('many.jsonl', lines(...entities)))
  expect(summary).toMatchObject({ memories: { added: 70 } })
  process.off('warning', listen)
  expect(warnings).toEqual([])
})

test('server-memory: entities, relations, faults with their lines, and the same again', async () => {
  const path = write(
    'memory.jsonl',
    lines(
      relation('Ann', 'knows', 'Bob'),
      entity('Ann', 'Likes rye.', 'Keeps the lamp.'),
      entity('Bob'),
      relation('Ann', 'works with', 'Bob'),
      relation('Ann', 'knows', 'Bob'),
      relation('Bob', 'misses', 'Cleo'),
      relation('Bob', 'loves', 'Bob'),
    ) + '{"type":"entity","name":"Dan"}\nnot JSON\n\n',
  )
  const dry = await bring('server-memory', path, '--dry-run')
  expect(dry.summary).toMatchObject({ dry_run: true, memories: { added: 2, failed: 2 }, edges: { failed: 1 } })
  expect((await seen()).memories).toEqual([])

  const first = await bring('server-memory', path)
  expect(first).toMatchObject({
    code: 4,
    summary: { memories: { added: 2, failed: 2 }, edges: { added: 1, failed: 2 } },
  })
  expect(first.stderr).toContain('line 8: entityType is required')
  expect(first.stderr).toContain('line 9: it is not JSON')
  expect(first.stderr).toContain('line 6: there is no Memory of "Cleo" to link')
  expect(first.stderr).toContain('line 7: target_memory_id is the Memory itself')
  expect(first.stderr).toContain('4 could not be brought in')
  const found = await seen()
  expect(found.memories.map(({ content }) => content)).toEqual([
    'Ann (person)\n\nLikes rye.\n\nKeeps the lamp.',
    'Bob (person)',
  ])
  expect(found.memories[0]).toMatchObject({
    tags: { entity_name: 'Ann', entity_type: 'person' },
    writer: 'agent_opaque_local',
  })
  expect(found.edges).toEqual(['Ann (person) > Bob (person) {"relations":["knows","works with"]}'])

  const before = await exported(place)
  const again = await bring('server-memory', path)
  expect(again.summary).toMatchObject({ memories: { added: 0, unchanged: 2 }, edges: { added: 0, unchanged: 1 } })
  expect(withoutAgents(await exported(place))).toEqual(withoutAgents(before))
  expect(await verified(place)).toMatchObject([{ ok: true }])
})

test('what changed in the source is skipped, overwritten or stops the import; what was forgotten stays so', async () => {
  const path = write('memory.jsonl', lines(entity('Ann', 'Likes rye.'), entity('Bob'), relation('Ann', 'knows', 'Bob')))
  expect(await bring('server-memory', path)).toMatchObject({ code: 0 })
  write('memory.jsonl', lines(entity('Ann', 'Likes tea.'), entity('Bob'), relation('Ann', 'trusts', 'Bob')))
  const before = await exported(place)
  expect((await bring('server-memory', path)).summary).toMatchObject({
    memories: { unchanged: 1, skipped: 1 },
    edges: { skipped: 1 },
  })
  const stopped = await bring('server-memory', path, '--conflict', 'error')
  expect(stopped).toMatchObject({ code: 4, summary: undefined })
  expect(stopped.stderr).toMatch(/line 1: Memory mem_\w+ is here already with other content or tags/)
  expect(await exported(place)).toBe(before)
  expect((await bring('server-memory', path, '--conflict', 'overwrite')).summary).toMatchObject({
    memories: { unchanged: 1, overwritten: 1 },
    edges: { overwritten: 1 },
  })
  const { memories, edges } = await seen()
  expect(memories[0]?.content).toBe('Ann (person)\n\nLikes tea.')
  expect(edges).toEqual(['Ann (person) > Bob (person) {"relations":["trusts"]}'])

  await within(place, async ({ service }) => {
    const caller = { requestId: 'req_1', startedAt: 0, agentId: 'agent_test', signal: new AbortController().signal }
    const { items } = await service.memories.list(await service.requireWorkspace(ws), undefined, true, 10, undefined)
    const bob = items.find(({ content }) => content === 'Bob (person)')
    await service.forget.run(caller, ws, bob?.id ?? '', false, undefined)
  })
  const after = await bring('server-memory', path, '--conflict', 'overwrite')
  expect(after).toMatchObject({ code: 4, summary: { memories: { unchanged: 1, forgotten: 1 }, edges: { failed: 1 } } })
  expect((await seen()).memories).toHaveLength(1)
})

test('mem0: bare or under results; users become tags, agents writers, times stay', async () => {
  const memories = [
    {
      id: 'a1',
      memory: 'Likes rye bread.',
      hash: 'x',
      user_id: 'ann',
      agent_id: 'agent_cook',
      metadata: { topic: 'food', rank: 3, nested: { a: 1 }, nothing: null },
      categories: ['food', 'habits'],
      created_at: '2025-01-02T03:04:05.123456-08:00',
      updated_at: '2025-02-03T00:00:00Z',
    },
    { id: 'a2', memory: 'Likes rye bread.', user_id: 'bob', metadata: null },
    { id: 'a3', text: 'no memory' },
    { id: 'a4', memory: 'x', user_id: 'u'.repeat(5000) },
  ]
  const path = write('list.json', JSON.stringify(memories, null, 2))
  const first = await bring('mem0', path)
  expect(first).toMatchObject({ code: 4, summary: { memories: { added: 2, failed: 2 } } })
  expect(first.stderr).toMatch(/line \d+: memory is required\n/)
  expect(first.stderr).toMatch(/line \d+: tags\.user_id is longer than 4096 characters\n/)
  const found = (await seen()).memories
  expect(found).toHaveLength(2)
  expect(found.find(({ tags }) => tags['user_id'] === 'ann')).toEqual({
    content: 'Likes rye bread.',
    tags: {
      agent_id: 'agent_cook',
      categories: 'food, habits',
      nested: '{"a":1}',
      rank: '3',
      topic: 'food',
      user_id: 'ann',
    },
    collection: undefined,
    writer: 'agent_cook',
    times: [toTimestamp(Date.parse('2025-01-02T11:04:05.123Z')), '2025-02-03T00:00:00.000Z'],
  })
  const before = await exported(place)
  const answer = write(
    'answer.json',
    JSON.stringify({ count: 2, results: memories.slice(0, 2), relations: [{ memory: 'no' }] }),
  )
  expect(await bring('mem0', answer)).toMatchObject({ code: 0, summary: { memories: { added: 0, unchanged: 2 } } })
  expect(await exported(place)).toBe(before)
})

test('markdown: folders, front matter, links, and the same again', async () => {
  write(
    'notes/index.md',
    '---\ntitle: All\ntags: [home, "#top"]\nrank: 1\ncreated: 2025-03-04\n---\n# Index\n\nSee [[Bread]] and [[Nobody]].\n',
  )
  write('notes/food/bread.md', '# Bread\n\nBaked by [the keeper](../people/keeper.md#habits), not [[Bread]].\n')
  write('notes/people/keeper.md', '---\ntags: rye, lamp\n---\n# Keeper\n\n[back](../index.md)\n')
  write('notes/people/picture.png', 'no text')
  write('notes/.trash/old.md', 'gone')
  writeFileSync(join(place.directory, 'notes/broken.md'), Buffer.from([0xff, 0xfe, 0x41]))
  write('notes/yaml.md', '---\ntitle: [\n---\n')
  const path = join(place.directory, 'notes')
  const first = await bring('markdown', path)
  expect(first).toMatchObject({
    code: 4,
    summary: { memories: { added: 3, failed: 2 }, edges: { added: 3 }, collections_added: 2 },
  })
  expect(first.stderr).toContain('broken.md: it is not UTF-8 text')
  expect(first.stderr).toContain('yaml.md: ')
  const { memories, edges } = await seen()
  expect(memories).toMatchObject([
    { collection: 'food', tags: { path: 'food/bread.md' } },
    {
      content: '# Index\n\nSee [[Bread]] and [[Nobody]].\n',
      collection: undefined,
      tags: { home: 'true', top: 'true', title: 'All', rank: '1', path: 'index.md' },
      times: ['2025-03-04T00:00:00.000Z', '2025-03-04T00:00:00.000Z'],
    },
    { collection: 'people', tags: { rye: 'true', lamp: 'true' } },
  ])
  expect(edges).toEqual(['Bread > Keeper null', 'Index > Bread null', 'Keeper > Index null'])

  rmSync(join(path, 'broken.md'))
  rmSync(join(path, 'yaml.md'))
  const before = await exported(place)
  expect(await bring('markdown', path, '--conflict', 'error')).toMatchObject({
    code: 0,
    stderr: '',
    summary: { memories: { added: 0, unchanged: 3 }, edges: { added: 0, unchanged: 3 } },
  })
  expect(await exported(place)).toBe(before)
})
