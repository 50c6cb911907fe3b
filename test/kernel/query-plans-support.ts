import type { Database, Param, Queryable } from '../../src/database/database.ts'
import { scopeKey } from '../../src/kernel/store/scope-key.ts'

/** How a database would go about the statements of a function, over tables that are full. */

interface Statement {
  sql: string
  params: readonly Param[]
}

export interface Plan {
  /** `<table>_pkey` is the primary key of a table, `<table>_key` another unique one. */
  indexes: string[]
  /** Tables that are read from one end to the other. */
  scanned: string[]
  /** Rows are brought into an order that no index has. */
  sorts: boolean
}

class Undone extends Error {}

/** The plans of all statements that `fn` makes; what it writes is undone. Those of PostgreSQL hold for whatever parameters. */
export async function plansOf(database: Database, fn: (db: Queryable) => Promise<unknown>): Promise<Plan[]> {
  const statements: Statement[] = []
  const work = database.transaction(async (tx) => {
    const note = (sql: string, params: readonly Param[] = []): readonly Param[] => {
      statements.push({ sql, params })
      return params
    }
    await fn({
      dialect: tx.dialect,
      get: (sql, params) => tx.get(sql, note(sql, params)),
      all: (sql, params) => tx.all(sql, note(sql, params)),
      run: (sql, params) => tx.run(sql, note(sql, params)),
    })
    throw new Undone()
  })
  await work.catch((error: unknown) => {
    if (!(error instanceof Undone)) throw error
  })
  const plans: Plan[] = []
  for (const statement of statements) {
    plans.push(
      ...(database.dialect === 'sqlite'
        ? [await planOfSqlite(database, statement)]
        : await plansOfPostgres(database, statement)),
    )
  }
  return plans
}

async function planOfSqlite(database: Database, { sql, params }: Statement): Promise<Plan> {
  const steps = await database.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params)
  const found = (pattern: RegExp): string[] => steps.flatMap(({ detail }) => pattern.exec(detail)?.[1] ?? [])
  const made = found(/^(?:CO-ROUTINE|MATERIALIZE) (\w+)$/)
  return {
    indexes: found(/USING (?:COVERING )?INDEX (\w+)/).map(nameOfSqlite),
    scanned: found(/^SCAN (\w+)$/).filter((name) => !made.includes(name)),
    sorts: found(/(TEMP B-TREE FOR ORDER BY)/).length > 0,
  }
}

const nameOfSqlite = (index: string): string =>
  index.replace(
    /^sqlite_autoindex_(\w+)_(\d+)$/,
    (_, table: string, number) => `${table}_${number === '1' ? 'pkey' : 'key'}`,
  )

interface Node {
  'Node Type': string
  'Total Cost': number
  'Index Name'?: string
  'Relation Name'?: string
  Plans?: Node[]
}

/** For these parameters, and, where it seems as cheap to PostgreSQL, the one for any: it keeps to that soon. */
async function plansOfPostgres(database: Database, { sql, params }: Statement): Promise<Plan[]> {
  const explain = async (options: string, values: readonly Param[]): Promise<Node[]> => {
    const row = await database.get<{ 'QUERY PLAN': [{ Plan: Node }] }>(`EXPLAIN (${options}) ${sql}`, values)
    return row ? within(row['QUERY PLAN'][0].Plan) : []
  }
  const custom = await explain('FORMAT JSON', params)
  const generic = await explain('FORMAT JSON, GENERIC_PLAN', [])
  const costOf = ([first]: Node[]): number => first?.['Total Cost'] ?? NaN
  return (costOf(generic) > costOf(custom) ? [custom] : [custom, generic]).map((nodes) => ({
    indexes: nodes.flatMap((node) => node['Index Name'] ?? []).map(nameOfPostgres),
    scanned: nodes.flatMap((node) => (node['Node Type'] === 'Seq Scan' ? (node['Relation Name'] ?? []) : [])),
    sorts: nodes.some((node) => node['Node Type'] === 'Sort'),
  }))
}

const nameOfPostgres = (index: string): string => index.replace(/^(kernel_[a-z]+)_(scope|\w+_id)_\w*key$/, '$1_key')

const within = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(within)]

/** What a column of row `i` has: a text of SQL. */
type Columns = Record<string, string>

const text = (prefix: string, number: string): string => `'${prefix}' || CAST(1000000 + ${number} AS TEXT)`

/** A record's id by the number of its row. */
export const idOf = (prefix: string, i: number): string => `${prefix}${1_000_000 + i}`

const WHEN = 1_700_000_000_000
const LATER = 2_000_000_000_000
const SCOPE_OF_ROW = '$2'
const base = (prefix: string): Columns => ({ scope: SCOPE_OF_ROW, id: text(prefix, 'i'), revision: '1', body: `'{}'` })
const OWNER = { owner_type: `'agent'`, owner_id: text('owner ', 'i % 500') }
const one = (of: number, then: string, otherwise: string): string =>
  `CASE WHEN i % ${of} = 0 THEN ${then} ELSE ${otherwise} END`

/** In each hundred runs: 1 that is due, 1 that is not yet, 1 at work, 40 that wait for events, 20 that sleep, and the rest done. */
const RUN_STATUS = `CASE WHEN i % 100 < 2 THEN 'queued' WHEN i % 100 = 2 THEN 'running' WHEN i % 100 < 43 THEN 'waiting_for_event'
  WHEN i % 100 < 63 THEN 'sleeping' ELSE 'completed' END`

const TABLES: Record<string, Columns> = {
  kernel_objectives: {
    ...base('o'),
    ...OWNER,
    status: one(50, `'draft'`, `'active'`),
    precedence: '0',
    recency: `-${WHEN} - i`,
  },
  kernel_projects: { ...base('p'), ...OWNER, status: one(50, `'draft'`, `'active'`), recency: `-${WHEN} - i` },
  kernel_project_objectives: { scope: SCOPE_OF_ROW, objective_id: text('o', 'i % 5000'), project_id: text('p', 'i') },
  kernel_runs: {
    ...base('r'),
    ...OWNER,
    kind: one(10, `'conversation'`, `'agent_work'`),
    status: RUN_STATUS,
    source: `'manual'`,
    objective_id: one(10, text('o', 'i % 5000'), 'NULL'),
    project_id: one(10, text('p', 'i % 5000'), 'NULL'),
    parent_id: one(5, text('r', 'i / 50'), 'NULL'),
    root_id: text('r', 'i / 50'),
    agent_id: text('agent ', 'i % 200'),
    precedence: '-(i % 3)',
    created_at: `${WHEN} + i`,
    rank: 'i / 60',
    deadline: '9007199254740991',
    queue_entered_at: `${WHEN} + i`,
    available_at: `${WHEN} + i`,
    due: 'CASE WHEN i % 100 = 0 THEN 1 ELSE 0 END',
    wake_type: `CASE WHEN i % 100 BETWEEN 3 AND 42 THEN 'event' WHEN i % 100 BETWEEN 43 AND 62 THEN 'timer' END`,
    wake_reference: `CASE WHEN i % 100 BETWEEN 3 AND 42 THEN 'event ' || i WHEN i % 100 BETWEEN 43 AND 62 THEN '' END`,
    wake_at: `CASE WHEN i % 100 BETWEEN 43 AND 62 THEN ${WHEN} + i END`,
    sought: `'count the stars ' || i`,
  },
  kernel_run_leases: {
    scope: SCOPE_OF_ROW,
    run_id: text('r', 'i'),
    owner: `CASE WHEN i % 100 = 2 THEN 'w' END`,
    expires_at: `CASE WHEN i % 1000 = 2 THEN ${WHEN} WHEN i % 100 = 2 THEN ${LATER} END`,
    fencing_token: '1',
    claimed_at: `${WHEN}`,
    held: 'CASE WHEN i % 100 = 2 AND i % 1000 <> 102 THEN 1 ELSE 0 END',
  },
  kernel_slots: {
    scope: SCOPE_OF_ROW,
    kind: `'agent'`,
    name: text('agent ', 'i'),
    active: '1',
    capacity: '2',
    closed: '0',
  },
  kernel_run_slots: {
    scope: SCOPE_OF_ROW,
    run_id: text('r', 'i'),
    kind: `'agent'`,
    name: text('agent ', 'i % 200'),
    amount: '1',
  },
  kernel_run_cascades: { scope: SCOPE_OF_ROW, run_id: text('r', 'i') },
  kernel_turns: {
    ...base('t'),
    run_id: text('r', 'i / 5'),
    sequence: 'i % 5',
    status: one(5, `'running'`, `'completed'`),
  },
  kernel_dependency_groups: { ...base('g'), run_id: text('r', 'i'), status: `'waiting'` },
  kernel_dependencies: {
    scope: SCOPE_OF_ROW,
    group_id: text('g', 'i / 4'),
    child_id: text('r', 'i'),
    name: `'one'`,
    status: one(4, `'pending'`, `'succeeded'`),
  },
  kernel_requests: {
    ...base('q'),
    kind: `'request'`,
    status: one(100, `'pending'`, `'completed'`),
    source_run_id: text('r', 'i / 3'),
    child_run_id: text('r', 'i'),
    requester: text('agent/', 'i % 500'),
    recipient: text('agent/', 'i % 400'),
    created_at: `${WHEN} + i`,
  },
  kernel_request_runs: {
    scope: SCOPE_OF_ROW,
    request_id: text('q', 'i'),
    revision: '1',
    run_id: text('r', 'i'),
    settled: one(100, '0', '1'),
  },
  kernel_calls: {
    ...base('c'),
    run_id: text('r', 'i / 3'),
    deployment_id: text('agent ', 'i % 200'),
    status: `CASE WHEN i % 100 = 0 THEN 'ready' WHEN i % 100 = 1 THEN 'running' WHEN i % 100 = 2 THEN 'waiting_for_approval' ELSE 'succeeded' END`,
    idempotency_key: text('key ', 'i'),
    external_digest: text('digest ', 'i'),
    available_at: `${WHEN} + i`,
    created_at: `${WHEN} + i`,
  },
  kernel_call_leases: {
    scope: SCOPE_OF_ROW,
    call_id: text('c', 'i'),
    owner: `CASE WHEN i % 100 = 1 THEN 'w' END`,
    expires_at: `CASE WHEN i % 1000 = 1 THEN ${WHEN} WHEN i % 100 = 1 THEN ${LATER} END`,
    fencing_token: '1',
  },
  kernel_call_journal: {
    scope: SCOPE_OF_ROW,
    call_id: text('c', 'i'),
    attempt: '1',
    fencing_token: '1',
    claimed_at: `${WHEN}`,
  },
  kernel_approvals: {
    ...base('a'),
    ...OWNER,
    run_id: text('r', 'i / 3'),
    call_id: text('c', 'i'),
    status: one(100, `'pending'`, `'approved'`),
    expires_at: `${WHEN} + i`,
    created_at: `${WHEN} + i`,
  },
  kernel_counters: { scope: SCOPE_OF_ROW, name: text('stream:run:r', 'i'), value: '50' },
  kernel_events: {
    scope: SCOPE_OF_ROW,
    position: 'i + 100',
    stream: text('run:r', 'i / 10'),
    sequence: 'i % 10',
    event_type: one(10, `'run.created'`, `'run.transitioned'`),
    category: `'run'`,
    severity: one(1000, `'error'`, `'info'`),
    visibility: `'scope'`,
    run_id: text('r', 'i / 10'),
    agent_id: text('agent ', 'i % 200'),
    objective_id: text('o', 'i % 5000'),
    team_id: text('team ', 'i % 200'),
    project_id: text('p', 'i % 5000'),
    body: `'{}'`,
  },
  kernel_event_conversations: {
    scope: SCOPE_OF_ROW,
    conversation_id: text('conversation ', 'i % 1000'),
    position: 'i + 100',
  },
  kernel_agent_deployments: {
    ...base('agent '),
    status: one(10, `'retired'`, `'active'`),
    definition_id: text('agent ', 'i'),
    active_version: `'1.0.0'`,
  },
  kernel_definitions: {
    scope: SCOPE_OF_ROW,
    family: `'agent'`,
    id: text('agent ', 'i'),
    version: `'1.0.0'`,
    digest: `'d'`,
    created_at: `${WHEN}`,
    body: `'{}'`,
  },
  kernel_activations: {
    scope: SCOPE_OF_ROW,
    family: `'agent'`,
    deployment_id: text('agent ', 'i / 10'),
    deployment_revision: 'i % 10',
    to_version: `'1.0.0'`,
    body: `'{}'`,
  },
  kernel_amendments: {
    ...base('m'),
    family: `'agent'`,
    deployment_id: text('agent ', 'i / 10'),
    created_at: `${WHEN} + i`,
  },
  kernel_compilations: {
    scope: SCOPE_OF_ROW,
    id: text('k', 'i'),
    deployment_id: text('agent ', 'i / 10'),
    created_at: `${WHEN} + i`,
    body: `'{}'`,
  },
  kernel_bindings: {
    ...base('b'),
    family: `'agent'`,
    deployment_id: text('agent ', 'i / 10'),
    disabled: one(4, '1', '0'),
  },
  kernel_workers: {
    scope: SCOPE_OF_ROW,
    id: text('w', 'i'),
    kind: `'run'`,
    run_kinds: `'[]'`,
    concurrency: '1',
    active: '0',
    limits: `'{}'`,
    last_seen_at: `${WHEN} + i`,
  },
}

export const SCOPE = { kind: 'test', id: 'full' }

/** Puts so many rows of each of two scopes into each table; PostgreSQL learns how they are spread. */
export async function fillTables(database: Database, rows: number): Promise<void> {
  for (const [table, columns] of Object.entries(TABLES)) {
    for (const scope of [SCOPE, { kind: 'test', id: 'other' }]) {
      await database.run(
        `INSERT INTO ${table} (${Object.keys(columns).join(', ')})
         WITH RECURSIVE numbers (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i < $1 - 1)
         SELECT ${Object.values(columns).join(', ')} FROM numbers`,
        [rows, scopeKey(scope)],
      )
    }
  }
  if (database.dialect === 'postgres') await database.run('ANALYZE')
}
