import * as z from 'zod'
import { isLoopback, parseAddress } from './address.ts'
import { count, duration, lifetime, secret, text, toggle } from './values.ts'

const address = z.string().refine((value) => parseAddress(value) !== undefined, {
  error: 'must be host:port, [ipv6]:port or :port',
})

/** `https://app.example.com`, without a path; browsers send it so. */
const origin = z.string().regex(/^(\*|[a-z][a-z0-9+.-]*:\/\/[^/\s]+)$/i, 'must be an origin like https://host, or *')

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
    .regex(/^(hash|openai|voyage|gemini|local|noop):/, {
      error: 'must be provider:model with a provider of hash, openai, voyage, gemini, local, noop',
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
  concurrency: count(8, { min: 1 }),
  timeout: duration('30m'),
  /** Else ~/.mem/runs. */
  state_dir: text().optional(),
  journal: z.enum(['on_failure', 'always', 'never']).default('on_failure'),
  keep_runs: count(50),
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
  if (url.protocol === 'https:' || (allowsLoopback && isLoopback(url.hostname.replace(/^\[|\]$/g, ''))))
    return undefined
  return 'must be an https URL; platform.allow_insecure_loopback accepts http on this machine'
}

/** All of mem.yaml, by section. Contract: memory.md 10. */
export const schema = z.strictObject({
  server: server.prefault({}),
  storage: storage.prefault({}),
  embedding: embedding.prefault({}),
  telemetry: telemetry.prefault({}),
  limits: limits.prefault({}),
  runbook: runbook.prefault({}),
  platform: platform.prefault({}),
})

/** The values of mem.yaml after defaults, file, environment and flags; durations in ms, `~/` expanded. */
export type Values = z.output<typeof schema>
