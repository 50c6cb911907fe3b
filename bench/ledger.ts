/**
 * Verifying a ledger: node bench/run.mjs ledger [entries]
 * Fills the chain of a workspace (1,000,000 entries) and verifies it with `mem ledger verify`.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createIdSource } from '../src/base/ids.ts'
import { systemClock } from '../src/base/clock.ts'
import { chainEntry } from '../src/memory/ledger-chain.ts'
import { findChain, saveChain } from '../src/memory/store/chains.ts'
import { insertEntries, type LedgerRow } from '../src/memory/store/ledger.ts'
import { runProgram } from '../test/support/program.ts'
import { type InProcess, openInProcess } from './support/in-process.ts'
import { machine, round } from './support/measure.ts'

const BATCH = 10_000
const ids = createIdSource(systemClock)

/** Entries as imprints write them. */
async function fill({ db, workspace }: InProcess, entries: number): Promise<void> {
  for (let done = 0; done < entries; done += BATCH) {
    await db.transaction(async (tx) => {
      const chain = await findChain(tx, workspace.id)
      if (!chain) throw new Error('the workspace has no chain')
      const rows: LedgerRow[] = []
      for (let i = 0; i < BATCH; i++) {
        const entry = chainEntry(imprintEntry(workspace.id), chain)
        chain.seq = entry.seq
        chain.headHash = entry.entry_hash
        rows.push(entry)
      }
      await insertEntries(tx, rows)
      await saveChain(tx, workspace.id, chain)
    })
  }
}

const imprintEntry = (workspaceId: string): Parameters<typeof chainEntry>[0] => ({
  ledger_id: ids('lg_'),
  workspace_id: workspaceId,
  op: 'imprint',
  agent_id: 'agent_bench',
  ts: systemClock.now(),
  target: ids('mem_'),
  watermark_before: null,
  watermark_after: ids('wmk_'),
  request_id: ids('req_'),
  latency_ms: 1.234,
  api_key_id: null,
  user_id: null,
  metadata: '{"cells_created":1,"cells_re_embedded":1}',
  ip: '127.0.0.1',
  user_agent: 'bench',
  redact_audit: 0,
})

const entries = Number(process.argv[2] ?? 1_000_000)
const directory = mkdtempSync(join(tmpdir(), 'mem-bench-'))
const store = await openInProcess(join(directory, 'mem.db'))
await fill(store, entries)
await store.close()
const begin = performance.now()
const { code, stdout, stderr } = await runProgram(['ledger', 'verify', '--data-dir', directory], { directory })
const seconds = round((performance.now() - begin) / 1000)
rmSync(directory, { recursive: true })
if (code !== 0) throw new Error(`mem ledger verify ended with ${code}: ${stdout}${stderr}`)
console.log(machine())
console.log(`mem ledger verify of ${entries} entries: ${seconds} s (target: 20 s for 1,000,000)\n`)
