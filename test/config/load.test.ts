import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { configError, makeWorkspace } from './workspace.ts'

describe('memory#128 search order', () => {
  const files = {
    'mem.yaml': 'server: {addr: "localhost:1"}',
    'home/.mem/config.yaml': 'server: {addr: "localhost:2"}',
    'flag.yaml': 'server: {addr: "localhost:3"}',
    'variable.yaml': 'server: {addr: "localhost:4"}',
  }
  it.each([
    ['MEM_CONFIG before --config', { MEM_CONFIG: 'variable.yaml' }, { config: 'flag.yaml' }, 'localhost:4'],
    ['--config before ./mem.yaml', {}, { config: 'flag.yaml' }, 'localhost:3'],
    ['./mem.yaml before ~/.mem/config.yaml', {}, {}, 'localhost:1'],
    ['~/ in a named file', { MEM_CONFIG: '~/.mem/config.yaml' }, {}, 'localhost:2'],
    ['an empty MEM_CONFIG is none', { MEM_CONFIG: '' }, {}, 'localhost:1'],
  ])('%s', (_, env, flags, addr) => {
    expect(makeWorkspace(files).load(env, flags).server.addr).toBe(addr)
  })

  it('~/.mem/config.yaml when there is nothing else', () => {
    const { load, directory } = makeWorkspace({ 'home/.mem/config.yaml': files['home/.mem/config.yaml'] })
    const config = load()
    expect(config.server.addr).toBe('localhost:2')
    expect(config.file).toBe(join(directory, 'home/.mem/config.yaml'))
  })

  it('a named but missing file is an error, even when another exists', () => {
    const { load, directory } = makeWorkspace(files)
    const path = join(directory, 'none.yaml')
    expect(configError(() => load({ MEM_CONFIG: 'none.yaml' }, { config: 'flag.yaml' })).message).toBe(
      `configuration file ${path} (MEM_CONFIG) does not exist`,
    )
    expect(configError(() => load({}, { config: 'none.yaml' })).message).toContain('(--config) does not exist')
  })
})

describe('memory#128 precedence', () => {
  it('has defaults without any file', () => {
    const { load, directory } = makeWorkspace()
    const config = load()
    expect(config).toMatchObject({
      server: {
        addr: '127.0.0.1:7777',
        mode: 'single-tenant',
        timeout: 30_000,
        allowed_origins: [],
        mcp_enable: false,
      },
      storage: { data_dir: './data', metadata_driver: 'sqlite', content_driver: 'none', sqlite_synchronous: 'full' },
      embedding: { model: 'hash:default', batch_size: 16, timeout: 30_000, inline_timeout: 10_000 },
      telemetry: { log_level: 'info', log_format: 'json' },
      limits: { out_edges: 1000, batch_edges: 1000, memories_per_workspace: 0, workspaces: 0 },
      apiKey: undefined,
      file: undefined,
    })
    expect(config.stores.metadata).toEqual({ driver: 'sqlite', dsn: join(directory, 'data/mem.db') })
    expect(() => Object.assign(config.server, { addr: 'x' })).toThrow(TypeError)
  })

  it('file < environment < flags', () => {
    const { load } = makeWorkspace({
      'mem.yaml': 'server: {mode: multi-tenant, addr: ":1"}\nstorage: {data_dir: /file}',
    })
    const env = { MEM_ADDR: ':2', MEM_DATA_DIR: '/environment' }
    expect(load()).toMatchObject({ server: { mode: 'multi-tenant', addr: ':1' }, storage: { data_dir: '/file' } })
    expect(load(env)).toMatchObject({
      server: { mode: 'multi-tenant', addr: ':2' },
      storage: { data_dir: '/environment' },
    })
    expect(load(env, { 'data-dir': '/flag' }).storage.data_dir).toBe('/flag')
  })

  it.each([
    ['MEM_ADDR', ':9', 'server', { addr: ':9' }],
    ['MEM_MODE', 'multi-tenant', 'server', { mode: 'multi-tenant' }],
    ['MEM_API_KEY', 'k', 'server', { api_key: 'k' }],
    ['MEM_SERVER_TIMEOUT', '5m', 'server', { timeout: 300_000 }],
    [
      'MEM_ALLOWED_ORIGINS',
      'https://a.example, https://b.example',
      'server',
      { allowed_origins: ['https://a.example', 'https://b.example'] },
    ],
    ['MEM_MCP_ENABLE', 'true', 'server', { mcp_enable: true }],
    ['MEM_DATA_DIR', '/d', 'storage', { data_dir: '/d' }],
    ['MEM_VECTOR_DRIVER', 'sqlite-vec', 'storage', { vector_driver: 'sqlite-vec' }],
    ['MEM_GRAPH_DRIVER', 'none', 'storage', { graph_driver: 'none' }],
    ['MEM_LEDGER_DSN', '/l.db', 'storage', { ledger_dsn: '/l.db' }],
    ['MEM_CONTENT_DRIVER', 'file', 'storage', { content_driver: 'file' }],
    ['MEM_EMBEDDING_MODEL', 'noop:default', 'embedding', { model: 'noop:default' }],
    ['MEM_MODEL_DIR', '/models', 'embedding', { local_dir: '/models' }],
  ])('reads %s', (name, value, section, expected) => {
    expect(makeWorkspace().load({ [name]: value })).toMatchObject({ [section]: expected })
  })

  it.each([
    ['mode', 'multi-tenant', 'server', { mode: 'multi-tenant' }],
    ['allow-no-auth', true, 'server', { allow_no_auth: true }],
    ['mcp-enable', true, 'server', { mcp_enable: true }],
    ['api-key', 'k', 'server', { api_key: 'k' }],
    ['ledger-driver', 'file', 'storage', { ledger_driver: 'file' }],
    ['content-dsn', '/c', 'storage', { content_dsn: '/c' }],
    ['embedding-model', 'openai:', 'embedding', { model: 'openai:' }],
  ])('reads --%s', (name, value, section, expected) => {
    expect(makeWorkspace().load({}, { [name]: value })).toMatchObject({ [section]: expected })
  })

  it('takes an empty section, an empty key and an empty variable as left out', () => {
    const { load } = makeWorkspace({ 'mem.yaml': 'server:\nstorage:\n  data_dir:\n' })
    expect(load({ MEM_ADDR: '' })).toMatchObject({
      server: { addr: '127.0.0.1:7777' },
      storage: { data_dir: './data' },
    })
  })

  it('expands ~/', () => {
    const { load, directory } = makeWorkspace({ 'mem.yaml': 'storage: {data_dir: ~/data, ledger_dsn: ~/ledger.db}' })
    const config = load({ MEM_EMBEDDING_MODEL: 'local:~/model' })
    expect(config.storage.data_dir).toBe(join(directory, 'home/data'))
    expect(config.stores.ledger.dsn).toBe(join(directory, 'home/ledger.db'))
    expect(config.embedding.model).toBe(`local:${join(directory, 'home/model')}`)
  })

  it('gives the server model the variables of its provider, over the file; the others stay with their providers', () => {
    const { load } = makeWorkspace({
      'mem.yaml': 'embedding: {model: "openai:x", api_key: file, base_url: "http://file"}',
    })
    expect(load().embedding).toMatchObject({ api_key: 'file', base_url: 'http://file', providers: { openai: {} } })
    const env = { OPENAI_API_KEY: 'o', OPENAI_BASE_URL: 'http://o', VOYAGE_API_KEY: 'v', GEMINI_API_KEY: 'g' }
    expect(load(env).embedding).toMatchObject({
      api_key: 'o',
      base_url: 'http://o',
      providers: { openai: { api_key: 'o', base_url: 'http://o' }, voyage: { api_key: 'v' }, gemini: { api_key: 'g' } },
    })
    expect(load({ VOYAGE_API_KEY: 'v' }).embedding.api_key).toBe('file')
  })
})

describe('configuration errors', () => {
  const path = '(./mem.yaml)'
  it.each([
    ['server: {adr: x}', 'server.adr', `unknown key server.adr ${path}; did you mean server.addr?`],
    ['sever: {}', 'sever', `unknown key sever ${path}; did you mean server?`],
    ['limits: {data_dir: x}', 'limits.data_dir', `unknown key limits.data_dir ${path}; did you mean storage.data_dir?`],
    [
      'server: {tls: {cert: x}}',
      'server.tls.cert',
      `unknown key server.tls.cert ${path}; did you mean server.tls.cert_file?`,
    ],
    [
      'server: {mode: dual}',
      'server.mode',
      `server.mode must be one of single-tenant, multi-tenant, not 'dual' ${path}`,
    ],
    [
      'server: {timeout: soon}',
      'server.timeout',
      `server.timeout must be a duration: 30s, 5m or seconds, not 'soon' ${path}`,
    ],
    [
      'server: {timeout: 0}',
      'server.timeout',
      `server.timeout must be a duration above 0: 30s, 5m or seconds, not 0 ${path}`,
    ],
    [
      'server: {timeout: 600h}',
      'server.timeout',
      `server.timeout must be a duration of 596h at most: 30s, 5m or seconds, not '600h' ${path}`,
    ],
    [
      'gateway: {allowed_hosts: ["models:99999"]}',
      'gateway.allowed_hosts',
      `gateway.allowed_hosts must be host, host:port or a range like 10.0.0.0/8, not 'models:99999' ${path}`,
    ],
    ...['nonsense', 'authorization=Bearer%0Ahidden', 'bäd=hidden'].map((headers): [string, string, string] => [
      `telemetry: {otlp_headers: "${headers}"}`,
      'telemetry.otlp_headers',
      `telemetry.otlp_headers must be name=value pairs of headers, with commas between them ${path}`,
    ]),
    ['gateway: {retry_budget: 2}', 'gateway.retry_budget', `gateway.retry_budget must be 1 at most, not 2 ${path}`],
    [
      'gateway: {runtime_roles: [acme]}',
      'gateway.runtime_roles',
      `gateway.runtime_roles must be ids of organizations, or *, not 'acme' ${path}`,
    ],
    ['server: {timeout: [5]}', 'server.timeout', `server.timeout must be a duration: 30s, 5m or seconds ${path}`],
    [
      'server: {addr: localhost}',
      'server.addr',
      `server.addr must be host:port, [ipv6]:port or :port, not 'localhost' ${path}`,
    ],
    [
      'server: {allow_no_auth: "yes"}',
      'server.allow_no_auth',
      `server.allow_no_auth must be true or false, not 'yes' ${path}`,
    ],
    ['server: {api_key: 123456}', 'server.api_key', `server.api_key must be a text ${path}`],
    ['server: {api_key: ""}', 'server.api_key', `server.api_key must not be empty ${path}`],
    [
      'server: {allowed_origins: "x"}',
      'server.allowed_origins',
      `server.allowed_origins must be a list, not 'x' ${path}`,
    ],
    [
      'server: {allowed_origins: ["https://a/"]}',
      'server.allowed_origins',
      `server.allowed_origins must be an origin like https://host, or *, not 'https://a/' ${path}`,
    ],
    ['limits: 5', 'limits', `limits must be a section with keys, not 5 ${path}`],
    ['limits: {workspaces: -1}', 'limits.workspaces', `limits.workspaces must be at least 0, not -1 ${path}`],
    ['limits: {workspaces: 1.5}', 'limits.workspaces', `limits.workspaces must be a whole number, not 1.5 ${path}`],
    [
      'limits: {workspaces: 1e300}',
      'limits.workspaces',
      `limits.workspaces must be at most 9007199254740991, not 1e+300 ${path}`,
    ],
    ['embedding: {batch_size: 0}', 'embedding.batch_size', `embedding.batch_size must be at least 1, not 0 ${path}`],
    [
      'embedding: {model: bert}',
      'embedding.model',
      `embedding.model must be hash:default, openai:<model>, voyage:<model>, gemini:<model>, local:<path> or noop:default, not 'bert' ${path}`,
    ],
    [
      'embedding: {model: "hash:other"}',
      'embedding.model',
      `embedding.model must be hash:default, openai:<model>, voyage:<model>, gemini:<model>, local:<path> or noop:default, not 'hash:other' ${path}`,
    ],
    ['- 1', 'config', './mem.yaml must hold sections with keys'],
    [
      'server:\n  api_key: [secret\n',
      'config',
      './mem.yaml: Flow sequence in block collection must be sufficiently indented and end with a ] at line 3, column 1',
    ],
    ['server: {}\n---\ngateway: {}', 'config', './mem.yaml: it must hold one document: a line of --- begins another'],
    ['server: {}\nserver: {}', 'config', './mem.yaml: Map keys must be unique at line 2, column 1'],
    [
      'server: {api_key: a, api_key_file: b}',
      'server.api_key',
      'server.api_key (also as MEM_API_KEY or --api-key) and server.api_key_file are both set; keep one',
    ],
  ])('%s', (yaml, key, message) => {
    const { load, directory } = makeWorkspace({ 'mem.yaml': yaml })
    const error = configError(load)
    expect(error.message.replaceAll(`${directory}/`, './')).toBe(message)
    expect(error.key).toBe(key)
  })

  it('names the variable or flag whose value is bad, and lists every fault', () => {
    const { load } = makeWorkspace()
    const error = configError(() => load({ MEM_MCP_ENABLE: 'yes', MEM_MODE: 'dual' }, { 'vector-driver': 'faiss' }))
    expect(error.message.split('\n')).toEqual([
      `server.mode must be one of single-tenant, multi-tenant, not 'dual' (MEM_MODE)`,
      `server.mcp_enable must be true or false, not 'yes' (MEM_MCP_ENABLE)`,
      `storage.vector_driver must be one of sqlite, sqlite-vec, pgvector, postgres, not 'faiss' (--vector-driver)`,
    ])
  })
})
