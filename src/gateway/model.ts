/** The records of the gateway as its routes show them. Contract: gateway.md 1, 2. */

export const KINDS = [
  'openai',
  'anthropic',
  'gemini',
  'azure-openai',
  'bedrock',
  'vertex',
  'mistral',
  'groq',
  'ollama',
  'openai-compatible',
] as const
/** Of a provider connection. */
export type Kind = (typeof KINDS)[number]

export const SURFACES = ['chat', 'messages', 'responses', 'embeddings'] as const
export type Surface = (typeof SURFACES)[number]

/** The wire format that an upstream speaks. */
export type Dialect = 'openai' | 'anthropic' | 'gemini' | 'converse'

/** Classes of failures that an alias may let another candidate answer. Contract: gateway.md 2.2. */
export const FALLBACK_CLASSES = ['connect', 'transient', 'rate', 'auth', 'missing', 'context', 'filtered'] as const
/** Classes of what may come out of an attempt. Contract: gateway.md 4.4. */
export type FailureClass = (typeof FALLBACK_CLASSES)[number] | 'client' | 'deadline' | 'closed'

export type Scope = 'organization' | 'user'

export interface Limits {
  requests_per_minute?: number
  tokens_per_minute?: number
  max_concurrency?: number
}

/** In milliseconds. */
export interface Timeouts {
  connect_ms?: number
  first_byte_ms?: number
  idle_ms?: number
  total_ms?: number
}

export const HEALTH_STATES = ['unknown', 'healthy', 'degraded', 'cooling', 'open', 'rejected'] as const
export type HealthState = (typeof HEALTH_STATES)[number]

export interface Health {
  state: HealthState
  cooldown_until?: string
  models: { model: string; state: HealthState; until: string }[]
  checked_at?: string
}

export interface LastError {
  code: string
  status?: number
  /** Redacted, 500 characters at most. */
  message: string
  at: string
}

export interface Credential {
  id: number
  organization_id: number
  created_by: number
  created_at: string
  updated_at: string
  version: number
  scope: Scope
  user_id?: number
  provider: Kind
  name: string
  has_api_key: boolean
  api_key_last4?: string
  default_model?: string
  weight: number
  priority: number
  fallback_group?: string
  enabled: boolean
  base_url?: string
  /** Secrets read as `has_<name>`. */
  config?: Record<string, unknown>
  /** Values read as `***`. */
  custom_headers?: Record<string, string>
  model_mapping: Record<string, string>
  allowed_models: string[]
  limits: Limits
  timeouts: Timeouts
  health: Health
  last_error?: LastError
  last_used_at?: string
}

export interface AliasMember {
  credential_id: number
  model?: string
  weight?: number
  priority?: number
}

export interface Alias {
  id: number
  organization_id: number
  name: string
  scope: Scope
  user_id?: number
  strategy: 'weighted' | 'ordered'
  members: AliasMember[]
  fallback_models: string[]
  fallback_on: FailureClass[]
  /** Seconds. */
  cache_ttl?: number
  max_output_tokens?: number
  enabled: boolean
  created_at: string
  updated_at: string
}

export const WINDOWS = ['day', 'week', 'month', 'total'] as const

export interface Budget {
  /** Decimal USD. */
  limit_usd: string
  window: (typeof WINDOWS)[number]
  unknown_price: 'deny' | 'allow'
}

export interface VirtualKey {
  id: number
  organization_id: number
  name: string
  prefix: string
  last4: string
  user_id?: number
  allowed_models: string[]
  allowed_credentials: number[]
  budget?: Budget
  limits: Limits
  max_output_tokens?: number
  expires_at?: string
  enabled: boolean
  spent_usd: string
  reserved_usd: string
  window_resets_at?: string
  last_used_at?: string
  created_by: number
  created_at: string
  updated_at: string
}

export interface Settings {
  cost_tracking: boolean
  budget: Budget | null
  user_budget: Budget | null
  content_logging: boolean
  content_retention_days: number
  blocked_models: string[]
  max_request_bytes: number | null
  usage_retention_days: number
  private_credentials: boolean
  member_keys: boolean
  cache_scope: 'caller' | 'organization'
}

export const OUTCOMES = ['ok', 'error', 'client_closed', 'rejected', 'cached'] as const
export type Outcome = (typeof OUTCOMES)[number]

export const COST_STATES = ['exact', 'estimated', 'unknown_price', 'no_usage', 'disabled'] as const
export type CostState = (typeof COST_STATES)[number]

export interface AttemptRecord {
  credential_id: number
  model: string
  class: FailureClass | 'ok'
  status?: number | undefined
  started_at: string
  duration_ms: number
}

/** What is kept of every inference request. Contract: gateway.md 2.6. */
export interface UsageRecord {
  id: string
  request_id: string
  organization_id: number
  user_id?: number | undefined
  key_id?: number | undefined
  surface: Surface
  stream: boolean
  test: boolean
  model_requested: string
  alias_id?: number | undefined
  credential_id?: number | undefined
  provider?: Kind | undefined
  model_used?: string | undefined
  response_model?: string | undefined
  outcome: Outcome
  status: number
  error_code?: string | undefined
  finish_reason?: string | undefined
  attempts: AttemptRecord[]
  input_tokens: number | null
  cache_read_tokens: number | null
  cache_write_tokens: number | null
  cache_write_1h_tokens: number | null
  output_tokens: number | null
  reasoning_tokens: number | null
  /** Decimal USD. */
  cost_usd: string | null
  cost_state: CostState
  model_table_version: string
  started_at: string
  duration_ms: number
  upstream_ms: number
  overhead_ms: number
  first_token_ms?: number | undefined
  bytes_in: number
  bytes_out: number
  client?: string | undefined
  retry_count?: number | undefined
}
