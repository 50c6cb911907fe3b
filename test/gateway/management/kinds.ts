/** A service account as its provider gives it; the key opens nothing. */
export const SERVICE_ACCOUNT = JSON.stringify({
  type: 'service_account',
  client_email: 'mem@example.iam.gserviceaccount.com',
  private_key: '-----BEGIN PRIVATE KEY-----\nplanted-service-account-key\n-----END PRIVATE KEY-----\n',
  token_uri: 'https://oauth2.googleapis.com/token',
})

interface Sample {
  provider: string
  /** What creation needs beside provider and name. */
  fields: Record<string, unknown>
  /** The field that a 400 names without `fields`. */
  missing: string
  /** What is read back of `config`. */
  config: Record<string, unknown>
  /** Every secret in `fields`. */
  secrets: string[]
}

const KEY = 'planted-api-key-0123456789'

/** One of each way to write a credential. */
export const SAMPLES: Sample[] = [
  {
    provider: 'openai',
    fields: { api_key: KEY, config: { organization: 'org-1' } },
    missing: 'api_key',
    config: { organization: 'org-1' },
    secrets: [KEY],
  },
  {
    provider: 'anthropic',
    fields: { api_key: KEY },
    missing: 'api_key',
    config: { anthropic_version: '2026-10-21', default_max_tokens: 4096 },
    secrets: [KEY],
  },
  {
    provider: 'gemini',
    fields: { api_key: KEY },
    missing: 'api_key',
    config: { api_version: 'v1beta' },
    secrets: [KEY],
  },
  {
    provider: 'azure-openai',
    fields: { api_key: KEY, config: { endpoint: 'https://acme.openai.azure.com', deployment: 'gpt' } },
    missing: 'config.endpoint',
    config: { endpoint: 'https://acme.openai.azure.com', deployment: 'gpt', api_version: '2024-10-21' },
    secrets: [KEY],
  },
  {
    provider: 'bedrock',
    fields: {
      config: {
        region: 'eu-central-1',
        access_key_id: 'AKIAIOSFODNN7EXAMPLE',
        secret_access_key: 'planted-secret-access-key',
        session_token: 'planted-session-token',
      },
    },
    missing: 'config.region',
    config: {
      region: 'eu-central-1',
      access_key_id: 'AKIAIOSFODNN7EXAMPLE',
      use_runtime_role: false,
      has_secret_access_key: true,
      has_session_token: true,
    },
    secrets: ['planted-secret-access-key', 'planted-session-token'],
  },
  {
    provider: 'bedrock',
    fields: { config: { region: 'us-east-1', api_key: KEY } },
    missing: 'config.region',
    config: { region: 'us-east-1', use_runtime_role: false, has_secret_access_key: false, has_session_token: false },
    secrets: [KEY],
  },
  {
    provider: 'vertex',
    fields: { config: { project: 'acme', location: 'global', service_account: SERVICE_ACCOUNT } },
    missing: 'config.project',
    config: {
      project: 'acme',
      location: 'global',
      use_runtime_role: false,
      anthropic_version: 'vertex-2023-10-16',
      has_service_account: true,
    },
    secrets: ['planted-service-account-key'],
  },
  { provider: 'mistral', fields: { api_key: KEY }, missing: 'api_key', config: {}, secrets: [KEY] },
  { provider: 'groq', fields: { api_key: KEY }, missing: 'api_key', config: {}, secrets: [KEY] },
  { provider: 'ollama', fields: { base_url: 'http://127.0.0.1:11434/v1' }, missing: '', config: {}, secrets: [] },
  {
    provider: 'openai-compatible',
    fields: { base_url: 'https://models.example.org/v1', api_key: KEY, config: { drop: ['seed'] } },
    missing: 'base_url',
    config: { auth: 'bearer', stream_usage: true, responses: false, drop: ['seed'] },
    secrets: [KEY],
  },
]
