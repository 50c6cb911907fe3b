import { openStores } from '../../app/stores.ts'
import { loadConfig } from '../../config/load.ts'
import type { Verification } from '../../memory/ledger.ts'
import { verifyLedger } from '../../memory/verify-ledger.ts'
import { defineCommand } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import type { Row } from '../output.ts'
import { requireDatabase } from '../stores.ts'
import { CONFIG_FLAG, DATA_DIR_FLAG } from '../server-flags.ts'

export const verify = defineCommand({
  flags: {
    ...CONFIG_FLAG,
    ...DATA_DIR_FLAG,
    'expect-head': { value: 'hash', help: 'Also fail unless the last entry has this hash (needs --workspace)' },
  },
  notes:
    'Opens the stores directly, so it works beside a running server and without one. Proves that no entry was changed, ' +
    'removed, reordered or redacted without a forget that asked for it. Keep the head it prints elsewhere and pass it ' +
    'as --expect-head later: then a rewritten ledger fails too. Exit code 4 when a chain is broken.',
  examples: ['ledger verify', 'ledger verify --data-dir /var/lib/mem --workspace ws_01... --expect-head 3f2a...'],
  async run({ io, output, settings }, flags) {
    const { workspace } = settings
    const expected = flags['expect-head']
    if (expected !== undefined && workspace === undefined) throw usageError('--expect-head needs --workspace')
    const config = loadConfig({ flags, env: io.env })
    requireDatabase(config)
    const stores = await openStores(config)
    try {
      const found = await verifyLedger(stores.databases, workspace)
      if (workspace !== undefined && found.length === 0) {
        throw new CliError(EXIT.notFound, `workspace ${workspace} has no ledger here`)
      }
      const outcomes = found.map((outcome) => expectHead(outcome, expected))
      const [first] = outcomes
      if (workspace !== undefined && first) await output.answer(first, () => [toRow(first)])
      else await output.list({ chains: outcomes }, outcomes, toRow)
      const broken = outcomes.filter((outcome) => !outcome.ok).length
      if (broken > 0) throw new CliError(EXIT.failure, `${broken} of ${outcomes.length} ledger chains do not verify`)
    } finally {
      await stores.close()
    }
  },
})

const expectHead = (outcome: Verification, expected: string | undefined): Verification =>
  !outcome.ok || expected === undefined || outcome.head === expected
    ? outcome
    : { ...outcome, ok: false, first_bad_seq: outcome.entries, reason: 'the head is not the expected one' }

const toRow = (outcome: Verification): Row => [
  outcome.workspace_id,
  outcome.ok ? 'ok' : `broken at ${outcome.first_bad_seq}: ${outcome.reason}`,
  `${outcome.entries} entries`,
  outcome.head,
]
