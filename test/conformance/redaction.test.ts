import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { canonicalJson } from '../../src/base/canonical-json.ts'
import { sha256 } from '../../src/base/hash.ts'
import type { Database, Param } from '../../src/database/database.ts'
import { openDatabase } from '../../src/database/open.ts'
import { verifyChain, type Verification } from '../../src/memory/ledger.ts'
import { findChain } from '../../src/memory/store/chains.ts'
import { describeOnBoth } from '../support/memory-api.ts'
import { anId, expectError, expectOk, ledgerOf, readPages } from '../support/expectations.ts'

describeOnBoth('redaction and verification', (api) => {
  /** Works on the database below the API. */
  async function below<T>(work: (database: Database) => Promise<T>): Promise<T> {
    const database = openDatabase(api().address)
    try {
      return await work(database)
    } finally {
      await database.close()
    }
  }

  const verify = (ws: string): Promise<Verification> =>
    below((database) => verifyChain(database, ws, () => findChain(database, ws)))

  /** All that the stores hold: the files with their logs, or on PostgreSQL the rows (vacuum frees the rest). */
  async function storedText(): Promise<string> {
    const { dialect, dataDir } = api()
    if (dialect === 'postgres') {
      const tables = ['ledger', 'memory', 'memory_version', 'memory_tag', 'cell', 'idempotency', 'outbox']
      return below(async (database) =>
        JSON.stringify(await Promise.all(tables.map((table) => database.all(`SELECT * FROM ${table}`)))),
      )
    }
    const files = readdirSync(dataDir).filter((name) => name.startsWith('mem.db'))
    return files.map((name) => readFileSync(join(dataDir, name), 'latin1')).join('')
  }

  test('memory#113 redaction of 1500 entries: values gone from the database files, entries stay', async () => {
    const ws = await api().workspace()
    const secrets = ['SecretContent', 'SecretTagKey', 'SecretTagValue', 'SecretUserAgent', 'SecretOldContent']
    const secretsStored = async (): Promise<string[]> => {
      const text = await storedText()
      return secrets.filter((secret) => text.includes(secret))
    }
    const agent = { headers: { 'User-Agent': 'SecretUserAgent' } }
    const path = `/workspaces/${ws}/memories`
    const body = { content: 'a SecretOldContent', tags: { SecretTagKey: 'SecretTagValue' } }
    const { memory_id: id, watermark } = expectOk(await api().call('POST', path, body, agent), 201)
    const M = `${path}/${id}`
    expectOk(await api().call('PUT', M, { content: 'SecretContent', expected_watermark: watermark }, agent))
    for (let batch = 0; batch < 30; batch++) {
      await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          api().call('PUT', `${M}/tags/SecretTagKey${i}`, { value: `SecretTagValue${batch}` }, agent),
        ),
      )
    }
    expect(await secretsStored()).toEqual(secrets)
    const forgotten = await api().call('DELETE', `${M}?redact_audit=true`, undefined, agent)
    expect(expectOk(forgotten)).toEqual({
      memory_id: id,
      watermark: anId('wmk'),
      cascaded_edges: 0,
      redacted_entries: 1503,
      ledger_id: anId('lg'),
    })
    await expect.poll(secretsStored, { timeout: 60_000, interval: 250 }).toEqual([])

    const entries = await readPages(api(), `/workspaces/${ws}/ledger?memory_id=${id}`, 'entries', 1000)
    expect(entries).toHaveLength(1503)
    for (const entry of entries) {
      expect(entry).toMatchObject({
        ip: '[REDACTED]',
        user_agent: '[REDACTED]',
        metadata: { _redacted: '[REDACTED]' },
        redacted: true,
        redacted_fields: ['metadata', 'ip', 'user_agent'],
        agent_id: 'agent_test',
        request_id: anId('req'),
      })
    }
    expect(entries[0]).toMatchObject({ op: 'forget', redact_audit: true })
    expect(entries[1]).not.toHaveProperty('redact_audit')
    expect(await verify(ws)).toMatchObject({ ok: true, entries: 1505 })
  })

  /** A workspace of which one Memory was forgotten, one was redacted, and one lives. */
  async function redactedWorkspace() {
    const ws = await api().workspace()
    const [kept, gone, redacted] = [
      await api().imprint(ws, 'kept'),
      await api().imprint(ws, 'gone'),
      await api().imprint(ws, 'redacted'),
    ]
    const path = `/workspaces/${ws}/memories`
    for (const id of [kept, gone, redacted]) {
      expectOk(await api().call('PUT', `${path}/${id}/tags/k`, { value: 'v' }), 204)
      expectOk(await api().call('POST', `${path}/${id}:append`, { content: '!' }))
    }
    expectOk(
      await api().call('POST', `${path}/${redacted}/edges`, { target_memory_id: kept, edge_type: 'references' }),
      201,
    )
    expectOk(await api().call('DELETE', `${path}/${gone}`))
    const answer = expectOk(await api().call('DELETE', `${path}/${redacted}?redact_audit=true`))
    expect(answer).toMatchObject({ redacted_entries: 4, cascaded_edges: 1 })
    for (const name of ['y', 'z']) expectOk(await api().call('PUT', `/workspaces/${ws}`, { name }))
    return { ws, redacted, entries: await ledgerOf(api(), ws) }
  }

  test('memory#114 redaction spares other Memories; the hashes are those of 9.4', async () => {
    const { ws, redacted, entries } = await redactedWorkspace()
    expect(entries.filter((entry) => entry.redacted).map(({ op, target }) => [op, target])).toEqual(
      ['imprint', 'tag_set', 'append', 'forget'].map((op) => [op, redacted]),
    )
    for (const entry of entries) expect(entry.user_agent).toBe(entry.target === redacted ? '[REDACTED]' : 'node')
    const head = entries.at(-1)?.entry_hash
    expect(await verify(ws)).toEqual({ workspace_id: ws, entries: entries.length, head, ok: true })

    const stored = await below((database) =>
      database.all<{ pii_digest: string; salt: Uint8Array | null }>(
        'SELECT pii_digest, salt FROM ledger WHERE workspace_id = $1 ORDER BY seq',
        [ws],
      ),
    )
    for (const [i, entry] of entries.entries()) {
      const { entry_hash, metadata, ip, user_agent, redacted: isRedacted, redacted_fields: _, ...rest } = entry
      const { pii_digest, salt } = stored[i] ?? {}
      expect(sha256(canonicalJson({ ...rest, pii_digest }))).toBe(entry_hash)
      expect(salt === null).toBe(isRedacted === true)
      const pii = Buffer.from(canonicalJson({ metadata, ip, user_agent }))
      const isDigest = sha256(Buffer.concat([salt ?? new Uint8Array(), pii])) === pii_digest
      expect(isDigest).toBe(salt?.length === 16)
    }

    const deleted = await api().workspace()
    expectOk(await api().call('DELETE', `/workspaces/${deleted}`), 204)
    expectError(await api().call('GET', `/workspaces/${deleted}/ledger`), 404, 'not_found')
    expect(await verify(deleted)).toMatchObject({ ok: true, entries: 3 })
  })

  test('memory#114 verification finds edited field, removed middle, removed tail, false redaction', async () => {
    const { ws, entries } = await redactedWorkspace()
    const forget = entries.find((entry) => entry.op === 'forget' && !entry.redacted)?.seq ?? 0
    const falseRedaction = `metadata = NULL, ip = NULL, user_agent = NULL, salt = NULL,
      redacted_fields = '["metadata","ip","user_agent"]'`
    const tampering: [change: string, badSeq: number][] = [
      [`UPDATE ledger SET agent_id = 'agent_b' WHERE seq = 5`, 5],
      [`UPDATE ledger SET latency_ms = latency_ms + 1 WHERE seq = 5`, 5],
      [`UPDATE ledger SET metadata = '{"cells_created":9}' WHERE seq = 3`, 3],
      [`UPDATE ledger SET user_agent = 'another' WHERE seq = 3`, 3],
      [`UPDATE ledger SET ip = NULL WHERE seq = 3`, 3],
      [`UPDATE ledger SET entry_hash = prev_hash WHERE seq = 6`, 6],
      [`DELETE FROM ledger WHERE seq = 7`, 7],
      [`DELETE FROM ledger WHERE seq = 1`, 1],
      [`DELETE FROM ledger WHERE seq = ${entries.length}`, entries.length],
      [`DELETE FROM ledger WHERE seq > ${entries.length - 2}`, entries.length - 1],
      [`DELETE FROM ledger WHERE seq > 0`, 1],
      [`UPDATE ledger SET ${falseRedaction} WHERE seq = 3`, 3],
      [`UPDATE ledger SET ${falseRedaction} WHERE op = 'workspace_update' AND seq = ${entries.length}`, entries.length],
      [`UPDATE ledger SET redact_audit = 1 WHERE seq = ${forget}`, forget],
    ]
    for (const [change, first_bad_seq] of tampering) {
      const rows = await below((database) =>
        database.all<Record<string, Param>>('SELECT * FROM ledger WHERE workspace_id = $1', [ws]),
      )
      await below((database) => database.run(`${change} AND workspace_id = $1`, [ws]))
      const verdict = await verify(ws)
      expect({ change, ...verdict }).toMatchObject({
        change,
        ok: false,
        first_bad_seq,
        reason: expect.stringMatching(/./),
      })
      await restore(ws, rows)
    }
    expect((await verify(ws)).ok).toBe(true)
  })

  /** Puts the rows of a ledger back after a tampering. */
  const restore = (ws: string, rows: Record<string, Param>[]): Promise<void> =>
    below((database) =>
      database.transaction(async (tx) => {
        await tx.run('DELETE FROM ledger WHERE workspace_id = $1', [ws])
        for (const row of rows) {
          const columns = Object.keys(row)
          const places = columns.map((_, i) => `$${i + 1}`)
          await tx.run(`INSERT INTO ledger (${columns.join()}) VALUES (${places.join()})`, Object.values(row))
        }
      }),
    )
})
