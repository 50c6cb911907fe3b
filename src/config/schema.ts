import { isIP } from 'node:net'
import * as z from 'zod'
import { readHeaderPairs } from '../base/header-pairs.ts'
import { isLoopback, isRange } from '../base/network.ts'
import { parseAddress } from './address.ts'
import { kernel } from './kernel.ts'
import { count, duration, kinds, lifetime, secret, text, toggle } from './values.ts'

const MIB = 1024 * 1024

const address = z.string().refine((value) => parseAddress(value) !== undefined, {
  error: 'must be host:port, [ipv6]:port or :port',
})

/** `https://app.example.com`, without a path; browsers send it so. */
const origin = z.string().regex(/^(\*|[a-z][a-z0-9+.-]*:\/\/[^/\s]+)$/i, 'must be an origin like https://host, or *')

const HOST = /^(?:\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/i

/** Alone, or with a port that there is. */
function isHost(value: string): boolean {
  const found = HOST.exec(value)
  return found !== null && Number(found[1] ?? 1) <= 65_535
}

const allowedHost = z.string().refine((value) => isHost(value) || isIP(value) !== 0 || isRange(value), {
  error: 'must be host, host:port or a range like 10.0.0.0/8',
})

const tls = z.strictObject({
  enabled: toggle(),
  cert_file: text().optional(),
  key_file: text().optional(),
  auto_self_signed: toggle(),
})

const server = z.strictObject({
  addr: address.default('127.0.0.1:7777'),
  mode: z.enum(['single-tenant', 'multi-tenant']).default('single-tenant'),
  api_key: secret(),
  api_key_file: text().optional(),
  allow_no_auth: toggle(),
  timeout: duration('30s'),
  allowed_origins: z.array(origin).default([]),
  mcp_enable: toggle(),
  reject_inactive_agents: toggle(),
  tls: tls.prefault({}),
})

const storage = z.strictObject({
  data_dir: text().default('./data'),
  metadata_driver: z.enum(['sqlite', 'postgres']).default('sqlite'),
  metadata_dsn: text().optional(),
  vector_driver: z.enum(['sqlite', 'sqlite-vec', 'pgvector', 'postgres']).default('sqlite'),
  vector_dsn: text().optional(),
  graph_driver: z.enum(['sqlite', 'sqlite_graph', 'postgres', 'none']).default('sqlite'),
  graph_dsn: text().optional(),
  ledger_driver: z.enum(['sqlite', 'postgres', 'file']).default('sqlite'),
  ledger_dsn: text().optional(),
  content_driver: z.enum(['none', 'sqlite', 'postgres', 'file', 's3']).default('none'),
  content_dsn: text().optional(),
  version_retention_days: count(0),
  sqlite_synchronous: z.enum(['full', 'normal']).default('full'),
})

const embedding = z.strictObject({
  model: z
    .string()
    .regex(/^((hash|noop):(default)?|(openai|voyage|gemini):.*|local:.+)$/, {
      error: 'must be hash:default, openai:<model>, voyage:<model>, gemini:<model>, local:<path> or noop:default',
    })
    .default('hash:default'),
  base_url: z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).optional(),
  api_key: secret(),
  local_dir: text().optional(),
  batch_size: count(16, { min: 1 }),
  timeout: duration('30s'),
  inline_timeout: duration('10s', { zero: true }),
  query_prefix: z.string().default(''),
  document_prefix: z.string().default(''),
})

const telemetry = z.strictObject({
  log_level: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
  log_format: z.enum(['json', 'text']).default('json'),
  /** Where spans of model calls go: OTLP over HTTP. */
  otlp_endpoint: z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }).optional(),
  /** `name=value` pairs with commas between them, as OTEL_EXPORTER_OTLP_HEADERS has them. */
  otlp_headers: text()
    .refine(
      (pairs) => readHeaderPairs(pairs) !== undefined,
      'must be name=value pairs of headers, with commas between them',
    )
    .optional()
    .register(kinds, { kind: 'secret' }),
})

/** 0 is no limit. */
const limits = z.strictObject({
  out_edges: count(1000),
  batch_edges: count(1000),
  memories_per_workspace: count(0),
  workspaces: count(0),
})

/** A chat service's incoming webhook, by the name that nodes call it. */
const channel = z.strictObject({
  type: text(),
  webhook_url: secret(),
  webhook_url_env: text().optional(),
})

/** Contract: runbook.md 13. */
const runbook = z.strictObject({
  concurrency: count(8, { min: 1, max: 256 }),
  timeout: duration('30m'),
  /** Else ~/.mem/runs. */
  state_dir: text().optional(),
  journal: z.enum(['on_failure', 'always', 'never']).default('on_failure'),
  /** For none there is `journal: never`. */
  keep_runs: count(50, { min: 1 }),
  deny_private_networks: toggle(),
  allow_hosts: z.array(text()).default([]),
  channels: z.record(z.string(), channel).default({}),
  code: z.strictObject({ image: text().optional(), namespace: text().optional() }).prefault({}),
})

/** Contract: git-host.md 2.7. */
const platform = z
  .strictObject({
    base_url: z.url({ protocol: /^https?$/, error: 'must be an https URL' }).optional(),
    /** Else platform.key in the data directory. */
    key_file: text().optional(),
    session_ttl: lifetime('720h'),
    auto_migrate: toggle(true),
    allow_insecure_loopback: toggle(),
  })
  .superRefine(({ base_url = '', allow_insecure_loopback }, context) => {
    if (!URL.canParse(base_url)) return // said already, or not given
    const message = publicUrlFault(new URL(base_url), allow_insecure_loopback)
    if (message !== undefined) context.addIssue({ code: 'custom', path: ['base_url'], input: base_url, message })
  })

function publicUrlFault(url: URL, allowsLoopback: boolean): string | undefined {
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    return 'must have no user, query or fragment'
  if (url.protocol === 'https:' || (allowsLoopback && isLoopback(url.hostname))) return undefined
  return 'must be an https URL; platform.allow_insecure_loopback accepts http on this machine'
}

/** USD as a number or, to be exact, a text. */
const usd = z.union([z.string(), z.number()])

const modelPrices = z.strictObject({
  input: usd.optional(),
  output: usd.optional(),
  cache_read: usd.optional(),
  cache_write: usd.optional(),
  cache_write_1h: usd.optional(),
  reasoning: usd.optional(),
})

/** Contract: gateway.md 12. */
const gateway = z.strictObject({
  max_request_bytes: count(32 * MIB, { min: 1 }),
  max_response_bytes: count(64 * MIB, { min: 1 }),
  cache_bytes: count(64 * MIB),
  timeouts: z
    .strictObject({
      connect: duration('5s'),
      first_byte: duration('60s'),
      idle: duration('60s'),
      total: duration('10m'),
    })
    .prefault({}),
  commit_after: duration('10s'),
  max_attempts: count(3, { min: 1, max: 10 }),
  max_retry_after: duration('10s', { zero: true }),
  retry_budget: z
    .number('must be a number from 0 to 1')
    .min(0, 'must be 0 or more')
    .max(1, 'must be 1 at most')
    .default(0.2),
  max_active_requests: count(2000, { min: 1 }),
  queue_length: count(100),
  queue_wait: duration('2s', { zero: true }),
  flush_interval: duration('200ms'),
  flush_rows: count(500, { min: 1 }),
  on_metering_full: z.enum(['reject', 'drop']).default('reject'),
  /** Private addresses that credentials may name: host, host:port or CIDR. */
  allowed_hosts: z.array(allowedHost).default(['127.0.0.1:11434', 'localhost:11434']),
  /** Organizations that may use this machine's cloud roles: ids, or `*`. */
  runtime_roles: z
    .array(z.union([z.int().positive(), z.literal('*')], 'must be ids of organizations, or *'))
    .default([]),
  /** Roots beside the system's, PEM. */
  ca_file: text().optional(),
  price_file: text().optional(),
  /** Prices over those of the file and the shipped ones. */
  prices: z
    .array(z.looseObject({ provider: text(), model: text(), usd_per_million: modelPrices.optional() }))
    .default([]),
  metrics_token_file: text().optional(),
  /** Makes the sequence of picks the same at every start. */
  seed: z.int('must be a whole number').optional(),
})

/** All of mem.yaml, by section. Contract: memory.md 10. */
export const schema = z.strictObject({
  server: server.prefault({}),
  storage: storage.prefault({}),
  embedding: embedding.prefault({}),
  telemetry: telemetry.prefault({}),
  limits: limits.prefault({}),
  runbook: runbook.prefault({}),
  platform: platform.prefault({}),
  gateway: gateway.prefault({}),
  kernel: kernel.prefault({}),
})

/** The values of mem.yaml after defaults, file, environment and flags; durations in ms, `~/` expanded. */
export type Values = z.output<typeof schema>
