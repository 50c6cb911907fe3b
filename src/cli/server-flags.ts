import { SERVICES } from '../app/services.ts'
import type { Flags } from './command.ts'

/** The flags of the server verbs, by the names that the configuration knows. Contract: memory.md 11.2. */

export const CONFIG_FLAG = {
  config: { value: 'file', help: 'Configuration file (MEM_CONFIG, else ./mem.yaml, ~/.mem/config.yaml)' },
} as const satisfies Flags

export const DATA_DIR_FLAG = {
  'data-dir': { value: 'dir', help: 'Where the data lies (./data)' },
} as const satisfies Flags

/** Without choices: a bad value is the configuration's to refuse, with exit code 78. */
export const SERVE_FLAGS = {
  ...CONFIG_FLAG,
  ...DATA_DIR_FLAG,
  addr: { value: 'host:port', help: 'Where to listen (127.0.0.1:7777)' },
  mode: { value: 'mode', help: 'single-tenant or multi-tenant' },
  'metadata-driver': { value: 'driver', help: 'Store of records: sqlite, postgres' },
  'vector-driver': { value: 'driver', help: 'Store of vectors: sqlite, postgres, pgvector' },
  'graph-driver': { value: 'driver', help: 'Store of Edges: sqlite, postgres, none' },
  'ledger-driver': { value: 'driver', help: 'Store of the ledger: sqlite, postgres, file' },
  'content-driver': { value: 'driver', help: 'Store of bodies: none, sqlite, postgres, file, s3' },
  'content-dsn': { value: 'dsn', help: 'Where the bodies are: path, URL, directory, s3://bucket/prefix' },
  'embedding-model': { value: 'provider:model', help: 'Model of the vectors (hash:default)' },
  'api-key': { value: 'key', help: 'Key that callers must bring' },
  'allow-no-auth': { help: 'Listen without a key even where other machines can reach it' },
  'mcp-enable': { help: 'Serve the tools on /mcp' },
  kernel: { negatable: true, help: 'Serve the kernel of agent runs' },
  'kernel-context': { value: 'file', help: 'Credentials of the kernel (kernel-context.yaml)' },
  'kernel-scope': { value: 'kind:id', help: 'Whose runs are worked on (local:default)' },
  'standalone-operator': { help: 'Who is at this machine approves: on loopback only' },
  services: { value: 'names', list: true, choices: SERVICES, help: `Only these: ${SERVICES.join(', ')} (all)` },
} as const satisfies Flags
