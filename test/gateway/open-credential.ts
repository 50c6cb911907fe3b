import type { Kind } from '../../src/gateway/model.ts'
import type { OpenCredential } from '../../src/gateway/state/organization-state.ts'

/** A credential as the state in memory has it, but for these fields. */
export const openCredential = (kind: Kind, fields: Partial<OpenCredential> = {}): OpenCredential => ({
  id: 1,
  organizationId: 1,
  userId: undefined,
  version: 1,
  kind,
  name: `credential ${fields.id ?? 1}`,
  defaultModel: undefined,
  weight: 1000,
  priority: 0,
  fallbackGroup: undefined,
  enabled: true,
  baseUrl: undefined,
  config: {},
  secrets: {},
  customHeaders: {},
  modelMapping: new Map(),
  allowedModels: [],
  limits: {},
  timeouts: {},
  isBroken: false,
  rejectedUntil: undefined,
  ...fields,
})
