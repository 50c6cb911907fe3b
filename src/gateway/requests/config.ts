import * as z from 'zod'
import { jsonOf } from '../../base/json.ts'
import type { Kind } from '../model.ts'
import { clearable, label, modelName } from './fields.ts'

/** The `config` of each kind. Contract: gateway.md 2.1. */

/** Goes into a path or query. */
const version = z.string().regex(/^[A-Za-z0-9._-]{1,64}$/, 'must be letters, digits, dots and dashes')
/** Goes into a host name. */
const place = z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, 'must be small letters, digits and dashes')
/** Goes into a header or path. */
const account = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:-]{0,199}$/, 'must be letters, digits, dots, dashes, colons')
const secret = clearable(z.string().max(16_384, 'must have 16384 characters at most'))
const anthropicVersion = z.enum(['2026-10-21', '2023-06-01']).default('2026-10-21')

const TOKEN_URI = 'https://oauth2.googleapis.com/token'
const accountKey = z.looseObject({
  client_email: z.string().min(1),
  private_key: z.string().regex(/PRIVATE KEY/),
  token_uri: z.literal(TOKEN_URI).optional(),
})

/** The key of a service account: the JSON itself, or its text. */
const serviceAccount = z
  .preprocess((value) => (isFilled(value) ? JSON.stringify(value) : value), secret)
  .refine(
    (text) => text === undefined || accountKey.safeParse(jsonOf(text)).success,
    `must be the JSON key of a service account, with client_email, private_key and no token_uri but ${TOKEN_URI}`,
  )

/** What follows an endpoint in the addresses that Azure's pages show. Proxies may have a path, and end it as they like. */
const BEHIND_ENDPOINT = /\/openai\/(?:v1|deployments)(?:\/|$)|\.azure\.com(?::443)?\/openai\/?$/i

/** The address of azure-openai, to which `/openai/…` is added. Contract: gateway.md 5.2. */
export const azureAddress = z
  .string()
  .refine(
    (text) => !BEHIND_ENDPOINT.test(text),
    'must end before /openai, as https://<resource>.openai.azure.com: what follows comes from deployment and api_version ' +
      '(v1 for /openai/v1)',
  )

const isFilled = (value: unknown): boolean => typeof value === 'object' && value !== null

const none = z.strictObject({})

export const CONFIGS = {
  openai: z.strictObject({ organization: clearable(account), project: clearable(account) }),
  anthropic: z.strictObject({
    anthropic_version: anthropicVersion,
    default_max_tokens: z.int('must be a whole number').min(1, 'must be 1 or more').default(4096),
  }),
  gemini: z.strictObject({ api_version: version.default('v1beta') }),
  'azure-openai': z.strictObject({
    endpoint: azureAddress,
    deployment: clearable(modelName),
    api_version: version.default('2024-10-21'),
    base_model: clearable(modelName),
  }),
  bedrock: z
    .strictObject({
      region: place,
      access_key_id: clearable(z.string().regex(/^\w{16,128}$/, 'must be 16 to 128 letters and digits')),
      secret_access_key: secret,
      session_token: secret,
      use_runtime_role: z.boolean().default(false),
      role_arn: clearable(
        z.string().regex(/^arn:[\w-]+:iam::\d{12}:role\/[\w+=,.@/-]{1,512}$/, 'must be the ARN of a role'),
      ),
      api_key: secret,
    })
    .superRefine(
      ({ access_key_id, use_runtime_role, api_key, secret_access_key, session_token, role_arn }, context) => {
        const issue = (path: string, message: string): void =>
          context.addIssue({ code: 'custom', path: [path], message, input: undefined })
        const ways = [access_key_id !== undefined, use_runtime_role, api_key !== undefined].filter(Boolean)
        if (ways.length > 1) issue('access_key_id', 'excludes use_runtime_role and api_key: give exactly one of them')
        for (const [name, value] of Object.entries({ secret_access_key, session_token })) {
          if (value !== undefined && access_key_id === undefined) issue(name, 'needs access_key_id')
        }
        if (role_arn !== undefined && !use_runtime_role) issue('role_arn', 'needs use_runtime_role')
      },
    ),
  vertex: z
    .strictObject({
      project: account,
      location: place,
      service_account: serviceAccount,
      use_runtime_role: z.boolean().default(false),
      anthropic_version: version.default('vertex-2023-10-16'),
    })
    .refine(({ service_account, use_runtime_role }) => service_account === undefined || !use_runtime_role, {
      path: ['service_account'],
      message: 'excludes use_runtime_role',
    }),
  mistral: none,
  groq: none,
  ollama: none,
  'openai-compatible': z.strictObject({
    auth: z.enum(['bearer', 'x-api-key', 'none']).default('bearer'),
    stream_usage: z.boolean().default(true),
    responses: z.boolean().default(false),
    drop: z.array(label(100)).max(100, 'must have 100 entries at most').default([]),
  }),
} as const satisfies Record<Kind, z.ZodType>

/** What of a `config` is secret, and reads as `has_<name>`. */
export const SECRETS: Readonly<Partial<Record<Kind, readonly string[]>>> = {
  bedrock: ['secret_access_key', 'session_token'],
  vertex: ['service_account'],
}

/** The secrets that a configuration of a kind uses; those it cannot do without come first. */
export function secretsOf(
  kind: Kind,
  config: Readonly<Record<string, unknown>>,
): { required: readonly string[]; optional: readonly string[] } {
  if (kind === 'ollama' || kind === 'openai-compatible') return { required: [], optional: ['api_key'] }
  if (config['use_runtime_role'] === true) return { required: [], optional: [] }
  if (kind === 'vertex') return { required: ['service_account'], optional: [] }
  if (config['access_key_id'] !== undefined) return { required: ['secret_access_key'], optional: ['session_token'] }
  return { required: ['api_key'], optional: [] }
}

/** Where a secret is said in a request. */
export const secretField = (name: string): string => (name === 'api_key' ? name : `config.${name}`)
