import type { Schema } from '../schema.ts'
import { EMBEDDING } from './embedding-attributes.ts'

const string: Schema = { type: 'string', minLength: 1 }
const required = (names: string, properties: Readonly<Record<string, Schema>>): Schema => ({
  type: 'object',
  properties,
  required: names.split(' '),
})

/** A field of a cron expression: a list of values, ranges and `*`, each with a step. */
const cronField = (value: string): string => {
  const part = String.raw`(?:\*|(?:${value})(?:-(?:${value}))?)(?:/[1-9]\d?)?`
  return `${part}(?:,${part})*`
}
const anyCase = (text: string): string => `${text}|${text.toLowerCase()}`
const CRON_FIELDS = [
  String.raw`[0-5]?\d`,
  String.raw`[01]?\d|2[0-3]`,
  String.raw`0?[1-9]|[12]\d|3[01]`,
  `0?[1-9]|1[0-2]|${anyCase('JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC')}`,
  `[0-7]|${anyCase('SUN|MON|TUE|WED|THU|FRI|SAT')}`,
].map(cronField)

/** Name to a type, or to a type with more about it. */
const inputs: Schema = {
  type: 'object',
  additionalProperties: {
    anyOf: [
      { type: 'string' },
      {
        type: 'object',
        properties: {
          type: { type: 'string', default: 'any' },
          required: { type: 'boolean', default: false },
          default: {},
          description: { type: 'string' },
          enum: { type: 'array' },
        },
      },
    ],
  },
  description: 'Checked and completed in the trigger data',
}

const TRIGGERS: Readonly<Record<string, Schema>> = {
  webhook: {
    type: 'object',
    properties: {
      path: string,
      method: { type: 'string', enum: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], default: 'POST' },
      responseMode: { type: 'string', enum: ['async', 'sync'], default: 'async' },
      inputs,
      secret: { type: 'string', sensitive: true },
    },
  },
  cron: required('expression', {
    expression: {
      type: 'string',
      pattern: String.raw`^\s*${CRON_FIELDS.join(String.raw`\s+`)}\s*$`,
      description: 'Minute, hour, day of month, month, day of week, such as 0 3 * * *',
    },
    timezone: { type: 'string', default: 'UTC', pattern: '^[A-Za-z0-9_+/-]+$', description: 'IANA name' },
    inputs,
  }),
  manual: {
    type: 'object',
    properties: {
      confirmation: { type: 'boolean', default: false, description: 'Asks before the run goes on' },
      inputs,
    },
  },
}

const tool: Readonly<Record<string, Schema>> = { toolName: string, toolDescription: string }

const TOOLS: Readonly<Record<string, Schema>> = {
  tool_debug: {
    type: 'object',
    properties: {
      ...tool,
      level: { type: 'string', enum: ['debug', 'info', 'warn', 'error'], default: 'info' },
      includeRaw: { type: 'boolean', default: false },
    },
  },
  tool_mcp: required('toolName toolDescription command', {
    ...tool,
    command: string,
    args: { type: 'array', items: { type: 'string' } },
    env: { type: 'object' },
    tool: string,
  }),
  tool_memory: {
    type: 'object',
    properties: {
      ...tool,
      connectionString: { type: 'string', sensitive: true },
      tableName: { type: 'string', default: 'agent_memories' },
      useInMemory: { type: 'boolean', default: false },
      sessionId: { type: 'string', default: 'default' },
      userId: string,
      ...EMBEDDING,
    },
  },
  tool_vectordb: {
    type: 'object',
    properties: {
      ...tool,
      connectionString: { type: 'string', sensitive: true },
      table: string,
      ...EMBEDDING,
      searchMode: { type: 'string', enum: ['simple', 'basic', 'advanced'], default: 'simple' },
      vectorColumns: { type: 'array', items: { type: 'string' } },
      returnColumns: { type: 'array', items: { type: 'string' } },
      topK: { type: 'integer', minimum: 1, maximum: 1000, default: 5 },
      aggregationMethod: { type: 'string', enum: ['minimum', 'maximum', 'weighted'], default: 'minimum' },
      weights: { type: 'array', items: { type: 'number', minimum: 0 } },
    },
  },
}

const CODE: Schema = required('code', {
  code: { type: 'string', minLength: 1, evaluation: 'constant' },
  language: { type: 'string', enum: ['python'], default: 'python', evaluation: 'constant' },
  inputs: { type: 'object', description: 'JSON in the file named by $INPUT_FILE' },
  requirements: { type: 'array', items: { type: 'string' }, evaluation: 'constant', description: 'Pinned packages' },
  stream: { type: 'boolean', default: false, description: 'Shows log lines while the job runs' },
  cpu: string,
  memory: string,
  image: string,
})

const cluster: Readonly<Record<string, Schema>> = {
  namespace: string,
  clusterId: { type: ['integer', 'string'], default: 1 },
}
const count = (minimum: number, fallback?: number): Schema => ({
  type: 'integer',
  minimum,
  ...(fallback !== undefined && { default: fallback }),
})
const kinds = (names: string): Schema => ({ type: 'string', enum: names.split(' ') })

const ORCHESTRATOR: Readonly<Record<string, Schema>> = {
  orch_get: required('kind name', { ...cluster, kind: string, name: string, apiVersion: string }),
  orch_list: required('kind', {
    ...cluster,
    kind: string,
    apiVersion: string,
    labelSelector: { type: 'string' },
    fieldSelector: { type: 'string' },
    limit: count(1, 500),
  }),
  orch_logs: required('podName', {
    ...cluster,
    podName: string,
    container: string,
    tailLines: count(1, 1000),
    sinceSeconds: count(1),
  }),
  orch_events: { type: 'object', properties: { ...cluster, kind: string, name: string } },
  orch_restart: required('kind name', { ...cluster, kind: kinds('Deployment StatefulSet DaemonSet'), name: string }),
  orch_scale: required('kind name replicas', {
    ...cluster,
    kind: kinds('Deployment StatefulSet ReplicaSet'),
    name: string,
    replicas: count(0),
  }),
  orch_patch: required('kind name patch', {
    ...cluster,
    kind: string,
    name: string,
    patch: { type: ['object', 'array', 'string'] },
    patchType: {
      type: 'string',
      enum: ['strategic', 'merge', 'json'],
      default: 'strategic',
      evaluation: 'constant',
    },
  }),
  orch_delete: required('kind name', { ...cluster, kind: string, name: string, gracePeriodSeconds: count(0) }),
}

/** Attributes of the types that a registry may have no executor for. Contract: runbook.md 6.7 to 6.9. */
export const SCHEMAS_WITHOUT_EXECUTOR: Readonly<Record<string, Schema>> = {
  ...TRIGGERS,
  ...TOOLS,
  code: CODE,
  ...ORCHESTRATOR,
}
