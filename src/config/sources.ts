/** A key of mem.yaml: `section.key`, `section.part.key`. */
type Key = string

const SEAMS = ['metadata', 'vector', 'graph', 'ledger', 'content']

const text = (value: string): unknown => value
const toggle = (value: string): unknown => (value === 'true' ? true : value === 'false' ? false : value)
const number = (value: string): unknown => (/^\d+$/.test(value) ? Number(value) : value)
const list = (value: string): unknown =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)

/** Which variable sets which key, and how its text is read. Contract: memory.md 10. */
const VARIABLES: Readonly<Record<string, readonly [Key, (value: string) => unknown]>> = {
  MEM_ADDR: ['server.addr', text],
  MEM_MODE: ['server.mode', text],
  MEM_API_KEY: ['server.api_key', text],
  MEM_SERVER_TIMEOUT: ['server.timeout', text],
  MEM_ALLOWED_ORIGINS: ['server.allowed_origins', list],
  MEM_MCP_ENABLE: ['server.mcp_enable', toggle],
  MEM_DATA_DIR: ['storage.data_dir', text],
  ...Object.fromEntries(
    SEAMS.flatMap((seam) =>
      ['driver', 'dsn'].map((part) => [
        `MEM_${seam}_${part}`.toUpperCase(),
        [`storage.${seam}_${part}`, text] as const,
      ]),
    ),
  ),
  MEM_EMBEDDING_MODEL: ['embedding.model', text],
  MEM_MODEL_DIR: ['embedding.local_dir', text],
  OTEL_EXPORTER_OTLP_ENDPOINT: ['telemetry.otlp_endpoint', text],
  OTEL_EXPORTER_OTLP_HEADERS: ['telemetry.otlp_headers', text],
  BASE_URL: ['platform.base_url', text],
  MEM_ALLOW_INSECURE_LOOPBACK: ['platform.allow_insecure_loopback', toggle],
  KERNEL_STORAGE_DSN: ['kernel.storage.dsn', text],
  KERNEL_SKILLS_DIR: ['kernel.registry.skillsDir', text],
  MEM_RUNBOOK_CONCURRENCY: ['runbook.concurrency', number],
  MEM_RUNBOOK_TIMEOUT: ['runbook.timeout', text],
  MEM_RUNBOOK_STATE_DIR: ['runbook.state_dir', text],
  MEM_RUNBOOK_JOURNAL: ['runbook.journal', text],
  MEM_RUNBOOK_KEEP_RUNS: ['runbook.keep_runs', number],
  MEM_RUNBOOK_DENY_PRIVATE_NETWORKS: ['runbook.deny_private_networks', toggle],
  MEM_RUNBOOK_ALLOW_HOSTS: ['runbook.allow_hosts', list],
}

/** Which flag sets which key; `--config` is no key. Contract: memory.md 11.2. */
const FLAGS: Readonly<Record<string, Key>> = {
  addr: 'server.addr',
  mode: 'server.mode',
  'api-key': 'server.api_key',
  'allow-no-auth': 'server.allow_no_auth',
  'mcp-enable': 'server.mcp_enable',
  'data-dir': 'storage.data_dir',
  'content-dsn': 'storage.content_dsn',
  ...Object.fromEntries(SEAMS.map((seam) => [`${seam}-driver`, `storage.${seam}_driver`])),
  'embedding-model': 'embedding.model',
}

/** A value and where it came from, for the message when it is bad. */
export interface Given {
  key: Key
  value: unknown
  from: string
}

/** An empty variable is as good as none: container files often leave them so. */
export function fromEnvironment(env: Readonly<Record<string, string | undefined>>): Given[] {
  return Object.entries(VARIABLES).flatMap(([name, [key, read]]) => {
    const value = env[name]
    return value === undefined || value === '' ? [] : [{ key, value: read(value), from: name }]
  })
}

/** Flags by name without dashes; those that set no key are left to their command. */
export function fromFlags(flags: Readonly<Record<string, unknown>>): Given[] {
  return Object.entries(FLAGS).flatMap(([name, key]) => {
    const value = flags[name]
    return value === undefined ? [] : [{ key, value, from: `--${name}` }]
  })
}
