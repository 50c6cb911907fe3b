import * as z from 'zod'
import { KINDS, type Kind } from '../model.ts'
import { azureAddress, CONFIGS, SECRETS } from './config.ts'
import {
  byName,
  clearable,
  label,
  limits,
  modelName,
  modelPatterns,
  priority,
  scope,
  timeouts,
  weight,
} from './fields.ts'
import { customHeaders, headerFault } from './headers.ts'

const NAME = /^[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}$/

const fields = {
  provider: z.enum(KINDS),
  name: z.string().regex(NAME, 'must be 1 to 100 letters, digits, blanks, dots, dashes and underlines'),
  scope: scope.optional(),
  version: z.int('must be a whole number').optional(),
  enabled: z.boolean().default(true),
  api_key: clearable(
    z
      .string()
      .max(16_384, 'must have 16384 characters at most')
      .regex(/^[\x21-\x7e]+$/, 'must be visible ASCII without blanks'),
  ),
  default_model: clearable(modelName.refine((name) => [...name].length <= 200, 'must have 200 characters at most')),
  weight: weight.default(1),
  priority: priority.default(0),
  fallback_group: clearable(label(64)),
  base_url: clearable(z.string()),
  config: byName(z.string(), z.unknown(), 100, 'fields'),
  custom_headers: customHeaders,
  model_mapping: byName(modelName, modelName, 200, 'entries'),
  allowed_models: modelPatterns,
  limits,
  timeouts,
}

const testFields = { mode: z.enum(['auth', 'chat', 'embeddings']).optional(), model: clearable(modelName) }

/** How a credential is tried. Contract: gateway.md 3.5. */
export const testRequest = z.strictObject(testFields)
export type TestRequest = z.infer<typeof testRequest>

type Fields = z.infer<z.ZodObject<typeof fields>>

/** Reads `config` by the kind, takes its secrets apart, and looks at the headers' names. */
function byKind<T extends Fields>(request: T, context: z.RefinementCtx) {
  const { provider, custom_headers: headers, api_key } = request
  const read = CONFIGS[provider].safeParse(request.config)
  if (!read.success) {
    for (const issue of read.error.issues) {
      const [unknown] = issue.code === 'unrecognized_keys' ? issue.keys : []
      if (unknown === undefined) context.issues.push({ ...issue, path: ['config', ...issue.path], input: undefined })
      else context.addIssue({ code: 'custom', path: ['config', unknown], message: knownFields(provider) })
    }
    return z.NEVER
  }
  const address = provider === 'azure-openai' ? azureAddress.optional().safeParse(request.base_url) : undefined
  if (address?.error) {
    for (const issue of address.error.issues) context.issues.push({ ...issue, path: ['base_url'], input: undefined })
    return z.NEVER
  }
  const fault = headerFault({ kind: provider, config: read.data }, headers)
  if (fault) {
    const { name, message } = fault
    context.issues.push({ code: 'custom', path: ['custom_headers', name], message, input: headers })
    return z.NEVER
  }
  if (api_key !== undefined && 'api_key' in read.data && read.data.api_key !== undefined) {
    context.addIssue({ code: 'custom', path: ['config', 'api_key'], message: 'is given twice: api_key is the same' })
    return z.NEVER
  }
  const secrets = new Map<string, string>()
  const config: Record<string, unknown> = {}
  const secretNames = ['api_key', ...(SECRETS[provider] ?? [])]
  for (const [name, value] of Object.entries({ ...(api_key !== undefined && { api_key }), ...read.data })) {
    if (value === undefined) continue
    if (secretNames.includes(name)) secrets.set(name, String(value))
    else config[name] = value
  }
  return { ...request, config, secrets }
}

function knownFields(provider: Kind): string {
  const names = Object.keys(CONFIGS[provider].shape)
  return `is not a known field: ${provider} ${names.length > 0 ? `has ${names.join(', ')}` : 'has none'}`
}

export const credentialRequest = z.strictObject(fields).transform(byKind)
/** A credential as its people wrote it; its secrets stand apart, under the names of gateway.md 2.1. */
export type CredentialRequest = z.output<typeof credentialRequest>

export const unsavedTestRequest = z.strictObject({ ...fields, ...testFields }).transform(byKind)
