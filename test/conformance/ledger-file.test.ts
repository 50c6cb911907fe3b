import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../cli/run-cli.ts'
import { expectError, expectOk } from '../support/expectations.ts'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'

interface Line {
  ledger_id: string
  seq: number
  op: string
  agent_id: string
  target?: string
}

describe('a ledger in a file', () => {
  let api: MemoryApi
  let path: string
  let ws: string
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-ledger-'))
  beforeAll(async () => {
    path = join(directory, 'ledger.jsonl')
    api = await startMemoryApi({
      dialect: 'sqlite',
      env: { MEM_LEDGER_DRIVER: 'file', MEM_LEDGER_DSN: path },
    })
    ws = await api.workspace()
  })
  afterAll(async () => {
    await api.stop()
    rmSync(directory, { recursive: true })
  })

  const lines = (): Line[] =>
    readFileSync(path, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line): Line => JSON.parse(line))
  const verify = () =>
    runCli(['ledger', 'verify', '-w', ws, '-o', 'json'], {
      env: { HOME: api.dataDir, MEM_DATA_DIR: api.dataDir, MEM_LEDGER_DRIVER: 'file', MEM_LEDGER_DSN: path },
    })

  test('memory#115 query 501, redaction warning, verify works and finds what was changed', async () => {
    const id = await api.imprint(ws, 'personal')
    expectError(await api.call('GET', `/workspaces/${ws}/ledger`), 501, 'capability_unavailable', {
      seam: 'ledger',
      driver: 'file',
    })
    const forgotten = await api.call('DELETE', `/workspaces/${ws}/memories/${id}?redact_audit=true`)
    expect(expectOk(forgotten)).toMatchObject({ redacted_entries: 0, warnings: ['redaction_unsupported'] })
    expect(lines().map(({ seq, op }) => [seq, op])).toEqual([
      [1, 'workspace_create'],
      [2, 'agent_register'],
      [3, 'imprint'],
      [4, 'forget'],
    ])
    const whole = await verify()
    expect(whole.code).toBe(0)
    expect(JSON.parse(whole.stdout)).toMatchObject({ workspace_id: ws, entries: 4, ok: true })
    expect(expectOk(await api.call('GET', '//readyz')).adapter).toEqual({ primary: 'ok', vector: 'ok', ledger: 'ok' })

    const text = readFileSync(path, 'utf8')
    const spoilt: [string, string][] = [
      [text.replace('"op":"imprint","agent_id":"agent_test"', '"op":"imprint","agent_id":"agent_evil"'), 'changed'],
      [text.split('\n').toSpliced(1, 1).join('\n'), 'entry 2 is missing'],
      [text.split('\n').toSpliced(3, 1).join('\n'), 'missing at the end'],
      [text.replace('"cells_created":1', '"cells_created":2'), 'metadata'],
    ]
    for (const [spoiled, reason] of spoilt) {
      writeFileSync(path, spoiled)
      const { code, stdout } = await verify()
      expect(code).toBe(4)
      expect(JSON.parse(stdout)).toMatchObject({ ok: false, reason: expect.stringContaining(reason) })
    }
    writeFileSync(path, text)
    expect((await verify()).code).toBe(0)
  })

  test('memory#115 writes side by side are in the file, each once and in order, when they are answered', async () => {
    const ids = await Promise.all(Array.from({ length: 40 }, (_, i) => api.imprint(ws, `note ${i}`)))
    const mine = lines().filter(({ target }) => ids.includes(target ?? ''))
    expect(mine).toHaveLength(40)
    expect(new Set(mine.map(({ ledger_id: id }) => id)).size).toBe(40)
    const seqs = lines().map(({ seq }) => seq)
    expect(seqs).toEqual(seqs.map((_, i) => i + 1))
    expect((await verify()).code).toBe(0)
  })

  test('the console says that this ledger cannot be queried, and verifies it', async () => {
    const page = async (address: string) => {
      const answer = await fetch(api.url + address)
      return { status: answer.status, text: await answer.text() }
    }
    for (const address of ['/ui/audit', `/ui/audit?ws=${ws}`]) {
      const { status, text } = await page(address)
      expect(status).toBe(200)
      expect(text).toContain('This ledger cannot be queried')
      expect(text).not.toContain('Export CSV')
    }
    expect(await page('/ui')).toMatchObject({ status: 200, text: expect.stringContaining('The ledger is a file') })
    expect((await page('/ui/audit/export')).status).toBe(501)
    expect(await page(`/ui/api/audit/verify?ws=${ws}`)).toMatchObject({
      status: 200,
      text: expect.stringContaining('entries'),
    })
  })
})
