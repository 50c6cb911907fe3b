import { expect, test } from 'vitest'
import { md5 } from '../../src/base/hash.ts'
import { openDatabase } from '../../src/database/open.ts'
import type { Cell, MemoryWithCells } from '../../src/memory/model.ts'
import { describeOnBoth, type Reply } from '../support/memory-api.ts'

const fill = (words: string, bytes = 1500): string => `${words} ${'Some words of it. '.repeat(200)}`.slice(0, bytes)
const PARAGRAPHS = Array.from({ length: 25 }, (_, i) => fill(`Paragraph ${i}.`))

describeOnBoth('chunking', (api) => {
  const imprint = (ws: string, content: string, fields: object = {}): Promise<Reply> =>
    api().call('POST', `/workspaces/${ws}/memories`, { content, ...fields })
  const lookup = async (ws: string, id: string): Promise<MemoryWithCells> =>
    (await api().call('GET', `/workspaces/${ws}/memories/${id}`)).body
  /** The texts of the Cells of a content, each as the contract has Cells. */
  const cellsOf = async (
    content: string,
    fields: object = {},
    workspace: Record<string, unknown> = {},
  ): Promise<string[]> => {
    const ws = await api().workspace(workspace)
    const { status, body } = await imprint(ws, content, fields)
    expect({ status, body }).toMatchObject({ status: 201 })
    const memory = await lookup(ws, body.memory_id)
    expect(body.cells_created).toBe(memory.cells.length)
    expectWhole(memory)
    return memory.cells.map((cell) => cell.text)
  }
  /** Imprints, then edits; what came, and the Cells before and after. */
  const edited = async (before: string, method: string, suffix: string, body: object, fields: object = {}) => {
    const ws = await api().workspace()
    const made = (await imprint(ws, before, fields)).body
    const old = await lookup(ws, made.memory_id)
    const reply = await api().call(method, `/workspaces/${ws}/memories/${made.memory_id}${suffix}`, body, {
      headers: { 'If-Match': made.watermark },
    })
    const memory = await lookup(ws, made.memory_id)
    expectWhole(memory)
    return { ws, reply, old, memory }
  }
  const patch = (before: string, old_string: string, new_string: string, fields: object = {}) =>
    edited(before, 'PATCH', '', { patch: [{ old_string, new_string }] }, fields)

  test('memory#77 unknown chunker: 400; bad config value: 400 naming the key', async () => {
    const ws = await api().workspace()
    for (const chunker_id of ['semantic', '', 'Default', 'toString', 'code-py']) {
      expect(await imprint(ws, 'x', { chunker_id })).toMatchObject({
        status: 400,
        body: { error_code: 'invalid_input', details: { field: 'chunker_id' } },
      })
    }
    const bad: [chunker: string | undefined, key: string, values: string[]][] = [
      [undefined, 'target_tokens', ['15', '8193', '', 'many', '1e3', '-16', ' 20', '20.5', '9'.repeat(40)]],
      ['markdown', 'target_tokens', ['0']],
      ['csv', 'rows_per_cell', ['0', '-1', 'all']],
      ['csv', 'has_header', ['TRUE', '2', '']],
      ['csv', 'delimiter', ['', ',,', '"', '\n']],
      ['jsonl', 'lines_per_cell', ['0', 'x']],
      ['jsonl', 'validate', ['maybe']],
    ]
    for (const [chunker_id, key, values] of bad) {
      for (const value of values) {
        const reply = await imprint(ws, '{"a":1}', { chunker_id, chunker_config: { [key]: value } })
        expect({ value, reply }).toMatchObject({
          reply: {
            status: 400,
            body: { error_code: 'invalid_input', message: expect.stringContaining(key), details: { field: key } },
          },
        })
      }
    }
    const large = { no_such_key: 'x'.repeat(64 * 1024) }
    for (const chunker_config of [{ target_tokens: 20 }, ['16'], '16', null, { target_tokens: null }, large]) {
      const { status, body } = await imprint(ws, 'x', { chunker_config })
      expect({ chunker_config, status, body }).toMatchObject({
        status: 400,
        body: { details: { field: expect.stringContaining('chunker_config') } },
      })
    }
    expect((await api().call('GET', `/workspaces/${ws}/memories`)).body.memories).toEqual([])

    const config = { no_such_key: 'x', rows_per_cell: 'zero', target_tokens: '16' }
    const { body } = await imprint(ws, 'fine', { chunker_id: 'default', chunker_config: config })
    expect(await lookup(ws, body.memory_id)).toMatchObject({ chunker_id: 'default', chunker_config: config })
    const plain = await lookup(ws, (await imprint(ws, 'fine')).body.memory_id)
    expect(plain).not.toHaveProperty('chunker_id')
    expect(plain).not.toHaveProperty('chunker_config')
  })

  test('memory#78 default: Cells ≤ 2048 bytes, no overlap, whole code points, nothing lost', async () => {
    const content = [
      'Short. 😀',
      'ä'.repeat(5000),
      '😀'.repeat(3000),
      'No sentence end '.repeat(400),
      'A sentence, rather long, that ends. '.repeat(200),
      'e\u0301'.repeat(2000),
      'Last.',
    ].join('\n\n')
    const cells = await cellsOf(content)
    expect(cells.every((text) => Buffer.byteLength(text) <= 2048)).toBe(true)
    expect(cells.join('')).not.toContain('\ufffd')
    expect(ink(cells.join(''))).toBe(ink(content))
    let at = 0
    for (const text of cells) {
      expect(content.indexOf(text, at)).toBeGreaterThanOrEqual(at)
      at = content.indexOf(text, at) + text.length
    }
    expect(
      (await cellsOf(content, { chunker_config: { target_tokens: '16' } })).every(
        (text) => Buffer.byteLength(text) <= 64,
      ),
    ).toBe(true)
    for (const blank of ['', ' \n\n\t', '\u3000\u00a0']) {
      for (const chunker_id of ['default', 'markdown', 'no-chunk', 'csv', 'jsonl', 'code-go']) {
        expect(await cellsOf(blank, { chunker_id })).toEqual([])
      }
    }
    expect(await cellsOf('a\n\nb', { chunker_id: 'no-chunk' })).toEqual(['a\n\nb'])
  })

  test('memory#79 markdown: fence uncut; headings split; # in a fence does not', async () => {
    const fence = `\`\`\`sh\n# not a heading\n\n${'echo long line\n'.repeat(300)}\`\`\``
    const cells = await cellsOf(`# One\n\nText.\n\n${fence}\n\nAfter.\n\n## Two\nMore.`, {}, { chunker_id: 'markdown' })
    expect(cells).toEqual(['# One\n\nText.', fence, 'After.', '## Two\nMore.'])
  })

  test('memory#80 csv: header repeated, ragged, delimiter, rows per Cell, header-only', async () => {
    const csv = (content: string, chunker_config?: object): Promise<string[]> =>
      cellsOf(content, { chunker_id: 'csv', ...(chunker_config && { chunker_config }) })
    expect(await csv('a,b\n1,2\n3\n4,5,6\n')).toEqual(['a,b\n1,2', 'a,b\n3', 'a,b\n4,5,6'])
    expect(await csv('a;b\n"x;\ny";2\nsay "hi";3', { delimiter: ';' })).toEqual(['a;b\n"x;\ny";2', 'a;b\nsay "hi";3'])
    expect(await csv('h\n1\n2\n3', { rows_per_cell: '2' })).toEqual(['h\n1\n2', 'h\n3'])
    expect(await csv('1\n2', { has_header: 'no' })).toEqual(['1', '2'])
    expect(await csv('a,b\n')).toEqual(['a,b'])
  })

  test('memory#81 jsonl: blank lines skipped; bad line 400 with number; validate=false takes it', async () => {
    expect(await cellsOf('{"a":1}\n\n[2]\n"x"\n', { chunker_id: 'jsonl' })).toEqual(['{"a":1}', '[2]', '"x"'])
    const ws = await api().workspace({ chunker_id: 'jsonl' })
    expect(await imprint(ws, '{"a":1}\n\n{bad}\n')).toMatchObject({
      status: 400,
      body: { error_code: 'invalid_input', message: expect.stringContaining('line 3') },
    })
    expect(
      await cellsOf('1\n{bad}\n3', { chunker_id: 'jsonl', chunker_config: { validate: 'false', lines_per_cell: '2' } }),
    ).toEqual(['1\n{bad}', '3'])
  })

  test('memory#82 code-go: header + one Cell per declaration; broken code 201', async () => {
    const source =
      'package main\n\nimport "fmt"\n\n// Greets.\nfunc main() {\n\tfmt.Println("}")\n}\n\ntype T struct {\n\tA int\n}\n'
    expect(await cellsOf(source, { chunker_id: 'code-go' })).toEqual([
      'package main\n\nimport "fmt"',
      '// Greets.\nfunc main() {\n\tfmt.Println("}")\n}',
      'type T struct {\n\tA int\n}',
    ])
    expect(await cellsOf('package main\n\nfunc broken( {', { chunker_id: 'code-go' })).toEqual([
      'package main\n\nfunc broken( {',
    ])
  })

  test('memory#83 25 Cells, one patched: 1 embedded, 24 skipped, ids kept', async () => {
    const { reply, old, memory, ws } = await patch(PARAGRAPHS.join('\n\n'), 'Paragraph 12.', 'Paragraph twelve.')
    expect(old.cells).toHaveLength(25)
    expect(reply).toMatchObject({
      status: 200,
      body: { patches_applied: 1, cells_re_embedded: 1, cells_skipped: 24, cells_added: 0, cells_removed: 0 },
    })
    const kept = (cells: readonly Cell[]): Cell[] => cells.filter((_, seq) => seq !== 12)
    expect(kept(memory.cells)).toEqual(kept(old.cells))
    expect(memory.cells[12]?.cell_id).not.toBe(old.cells[12]?.cell_id)
    expect(memory.recall_ready).toBe(true)

    const memoryPath = `/workspaces/${ws}/memories/${memory.id}`
    const put = (content: string, expected_watermark: string): Promise<Reply> =>
      api().call('PUT', memoryPath, { content, expected_watermark }, { agent: 'agent_mover' })
    const same = await put(memory.content ?? '', memory.head_watermark)
    expect(same.body).toMatchObject({ cells_re_embedded: 0, cells_skipped: 25 })
    const moved = await put([...PARAGRAPHS.slice(13), ...PARAGRAPHS.slice(0, 12)].join('\n\n'), same.body.watermark)
    expect(moved.body).toMatchObject({ cells_re_embedded: 0, cells_skipped: 24 })
    const after = (await lookup(ws, memory.id)).cells
    expect(after.map((cell) => [cell.text, cell.seq])).toEqual([...after].map((cell, seq) => [cell.text, seq]))
    for (const cell of after) {
      const { seq: _, ...known } = memory.cells.find(({ cell_id }) => cell_id === cell.cell_id) ?? { seq: -1 }
      expect(cell).toMatchObject({ ...known, written_by_agent_id: 'agent_test' })
    }
  })

  test('memory#84 paragraph at top: 1 embedded, 25 skipped, seq gap-free', async () => {
    const before = PARAGRAPHS.join('\n\n')
    const { reply, old, memory } = await edited(before, 'PUT', '', { content: `${fill('On top.')}\n\n${before}` })
    expect(reply).toMatchObject({ status: 200, body: { cells_re_embedded: 1, cells_skipped: 25 } })
    expect(memory.cells.slice(1).map(({ cell_id }) => cell_id)).toEqual(old.cells.map(({ cell_id }) => cell_id))
    expect(memory.cells.map(({ seq }) => seq)).toEqual(Array.from({ length: 26 }, (_, i) => i))
  })

  test('memory#85 shrinking leaves no surplus Cells or vectors', async () => {
    const { ws, reply, memory } = await edited(PARAGRAPHS.join('\n\n'), 'PUT', '', { content: PARAGRAPHS[3] })
    expect(reply).toMatchObject({ status: 200, body: { cells_re_embedded: 0, cells_skipped: 1 } })
    expect(memory.cells).toHaveLength(1)
    const database = openDatabase(api().address)
    try {
      const cells = await database.all('SELECT cell_no FROM cell WHERE memory_id = $1', [memory.id])
      expect(cells).toHaveLength(1)
      expect(
        await database.all('SELECT cell_no FROM cell_vector WHERE cell_no NOT IN (SELECT cell_no FROM cell)'),
      ).toEqual([])
      expect(await database.all('SELECT cell_no FROM embed_job')).toEqual([])
    } finally {
      await database.close()
    }
    const emptied = await api().call('PUT', `/workspaces/${ws}/memories/${memory.id}`, {
      content: '',
      expected_watermark: memory.head_watermark,
    })
    expect(emptied).toMatchObject({ status: 200, body: { cells_re_embedded: 0, cells_skipped: 0 } })
    expect(await lookup(ws, memory.id)).toMatchObject({ content: '', cells: [], recall_ready: false })
  })

  test('memory#86 a csv Memory stays csv on update and patch', async () => {
    const fields = { chunker_id: 'csv', chunker_config: { delimiter: ';' } }
    const { ws, reply, memory } = await patch('h;i\n1;2\n3;4\n', '3;4', '3;5\n6;7', fields)
    expect(reply.body).toMatchObject({ cells_re_embedded: 2, cells_skipped: 1, cells_added: 1, cells_removed: 0 })
    expect(memory.cells.map(({ text }) => text)).toEqual(['h;i\n1;2', 'h;i\n3;5', 'h;i\n6;7'])
    await api().call('PUT', `/workspaces/${ws}`, { name: 'now markdown', chunker_id: 'markdown' })
    const put = await api().call('PUT', `/workspaces/${ws}/memories/${memory.id}`, {
      content: 'h;i\n"8;\n8";9',
      expected_watermark: memory.head_watermark,
    })
    expect(put.status).toBe(200)
    const after = await lookup(ws, memory.id)
    expect(after).toMatchObject({ chunker_id: 'csv', chunker_config: { delimiter: ';' } })
    expect(after.cells.map(({ text }) => text)).toEqual(['h;i\n"8;\n8";9'])
    // One that named none follows the workspace's chunker of the moment.
    const plain = (await imprint(ws, '# A\n\ntext')).body
    await api().call('PUT', `/workspaces/${ws}`, { name: 'now csv', chunker_id: 'csv' })
    await api().call('PUT', `/workspaces/${ws}/memories/${plain.memory_id}`, {
      content: 'a\n1\n2',
      expected_watermark: plain.watermark,
    })
    expect((await lookup(ws, plain.memory_id)).cells.map(({ text }) => text)).toEqual(['a\n1', 'a\n2'])
  })

  test('memory#87 append that breaks jsonl: 400, nothing changed', async () => {
    const { ws, reply, old, memory } = await edited(
      '{"a":1}\n',
      'POST',
      ':append',
      { content: '{bad' },
      { chunker_id: 'jsonl' },
    )
    expect(reply).toMatchObject({
      status: 400,
      body: { error_code: 'invalid_input', message: expect.stringContaining('line 2') },
    })
    expect(memory).toEqual(old)
    const path = `/workspaces/${ws}/memories/${memory.id}`
    expect((await api().call('GET', `${path}/watermarks`)).body.watermarks).toHaveLength(1)
    const put = { content: 'nope', expected_watermark: memory.head_watermark }
    expect((await api().call('PUT', path, put)).status).toBe(400)
    const patched = { patch: [{ old_string: '1}', new_string: '1' }], expected_watermark: memory.head_watermark }
    expect((await api().call('PATCH', path, patched)).status).toBe(400)
    expect(await lookup(ws, memory.id)).toEqual(old)
    const entries = (await api().call('GET', `/workspaces/${ws}/ledger?memory_id=${memory.id}`)).body.entries
    expect(entries.map((entry: { op: string }) => entry.op)).toEqual(['imprint'])
    const good = await api().call('POST', `${path}:append`, { content: '{"b":2}' })
    expect(good).toMatchObject({ status: 200, body: { cells_added: 1, cells_skipped: 1 } })
  })
})

/** What is not white space. */
const ink = (text: string): string => text.replace(/\s/gu, '')

/** Every Cell complete, in order, and of this Memory; embedded by the default model. */
function expectWhole(memory: MemoryWithCells): void {
  expect(memory.content_md5).toBe(md5(memory.content ?? ''))
  expect(memory.recall_ready).toBe(memory.cells.length > 0)
  for (const [seq, cell] of memory.cells.entries()) {
    expect(cell).toEqual({
      cell_id: expect.stringMatching(/^cell_[0-9A-HJKMNP-TV-Z]{26}$/),
      memory_id: memory.id,
      seq,
      text: cell.text,
      text_md5: md5(cell.text),
      written_by_agent_id: expect.stringMatching(/^agent_/),
      embedding_model: 'hash:default',
      vector_key: cell.cell_id,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    })
  }
  expect(new Set(memory.cells.map(({ cell_id }) => cell_id)).size).toBe(memory.cells.length)
}
