// What each kind of credential asks for beside what all have. Contract: gateway.md 2.1.
import { check, field, input, lines, numeric, select } from './gateway-elements.js'

const text = (name, label, hint, more) => ({ name, label, hint, more })
const secret = (name, label, hint) => ({ name, label, hint, isSecret: true })
const toggle = (name, label, isOn = false) => ({ name, label, isOn, isToggle: true })

const KEY = secret('api_key', 'API key')
const ROLE = toggle('use_runtime_role', 'No key: use the role of the machine that the server runs on')

export const KINDS = {
  openai: {
    base: 'https://api.openai.com/v1',
    fields: [KEY, text('organization', 'Organization'), text('project', 'Project')],
  },
  anthropic: {
    base: 'https://api.anthropic.com',
    fields: [
      KEY,
      { name: 'anthropic_version', label: 'API version', options: [['2026-10-21'], ['2023-06-01']] },
      {
        name: 'default_max_tokens',
        label: 'Output cap',
        hint: 'tokens, where a request has none',
        isNumber: true,
        most: '4096',
      },
    ],
  },
  gemini: {
    base: 'https://generativelanguage.googleapis.com',
    fields: [KEY, text('api_version', 'API version', undefined, { placeholder: 'v1beta' })],
  },
  'azure-openai': {
    fields: [
      text('endpoint', 'Endpoint', undefined, {
        required: true,
        type: 'url',
        placeholder: 'https://my-resource.openai.azure.com',
      }),
      KEY,
      text('deployment', 'Deployment'),
      text('api_version', 'API version', 'v1 for paths without versions', { placeholder: '2024-10-21' }),
      text('base_model', 'Model behind it', 'for its price', { placeholder: 'gpt-4o' }),
    ],
  },
  bedrock: {
    note: 'Give one of these: an access key with its secret, an API key, or the role of the machine.',
    base: 'https://bedrock-runtime.{region}.amazonaws.com',
    fields: [
      text('region', 'Region', undefined, { required: true, placeholder: 'eu-central-1' }),
      text('access_key_id', 'Access key id'),
      secret('secret_access_key', 'Secret access key'),
      secret('session_token', 'Session token', 'for temporary keys'),
      KEY,
      ROLE,
      text('role_arn', 'Role to take on', 'with the role of the machine', {
        placeholder: 'arn:aws:iam::123456789012:role/…',
      }),
    ],
  },
  vertex: {
    note: 'Give the key of a service account, or use the role of the machine.',
    base: 'https://{location}-aiplatform.googleapis.com',
    fields: [
      text('project', 'Project', undefined, { required: true }),
      text('location', 'Location', undefined, { required: true, placeholder: 'europe-west4' }),
      secret('service_account', 'Service account', 'its JSON key'),
      ROLE,
      text('anthropic_version', 'API version for Claude', undefined, { placeholder: 'vertex-2023-10-16' }),
    ],
  },
  mistral: { base: 'https://api.mistral.ai/v1', fields: [KEY] },
  groq: { base: 'https://api.groq.com/openai/v1', fields: [KEY] },
  ollama: { base: 'http://127.0.0.1:11434/v1', fields: [KEY] },
  'openai-compatible': {
    needsBase: true,
    fields: [
      KEY,
      { name: 'auth', label: 'The key goes as', options: [['bearer'], ['x-api-key'], ['none', 'not at all']] },
      text('drop', 'Fields that it does not know', 'left out of requests, with commas between'),
      toggle('stream_usage', 'It tells the usage of streams', true),
      toggle('responses', 'It has /responses'),
    ],
  },
}

const nameOf = (name) => (name === 'api_key' ? name : `config.${name}`)

/** The fields of a kind, filled with what is saved; secrets stay empty. */
export function kindFields(kind, credential, mayUseRole) {
  const config = credential?.config ?? {}
  return KINDS[kind].fields
    .filter((asked) => asked !== ROLE || mayUseRole)
    .map(({ name, label, hint, more, options, isSecret, isToggle, isNumber, isOn, most }) => {
      if (isToggle) return check(nameOf(name), config[name] ?? isOn, label)
      if (options) return field(label, select(nameOf(name), options, config[name]), hint)
      if (isNumber) return field(label, numeric(nameOf(name), config[name], { placeholder: most }), hint)
      if (!isSecret) return field(label, input(nameOf(name), [config[name] ?? ''].flat().join(', '), more), hint)
      const isKept = name === 'api_key' ? credential?.has_api_key : config[`has_${name}`]
      const kept = isKept ? 'saved; empty keeps it' : hint
      return field(label, input(nameOf(name), '', { type: 'password', autocomplete: 'new-password' }), kept)
    })
}

/** What a form says for these fields. */
export function configOf(kind, form) {
  const said = {}
  for (const { name, isToggle, isNumber } of KINDS[kind].fields) {
    if (name === 'api_key') continue
    const value = form.get(`config.${name}`)
    if (isToggle) {
      if (value !== null || name !== 'use_runtime_role') said[name] = value !== null
    } else if (value) said[name] = isNumber ? Number(value) : name === 'drop' ? lines(value) : value
  }
  return said
}
