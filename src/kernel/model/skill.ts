import * as z from 'zod'
import { risk, sideEffect } from './action.ts'
import { object, positive, prose, text, version } from './fields.ts'

/** What agents can do, as a skill declares it: immutable per id, version and source. Contract: kernel-2.md 1. */

const name = text(128)
const names = z.array(text(256)).max(500).default([])

const transportArgument = z.union([z.strictObject({ sourceArgument: name }), z.strictObject({ literal: z.json() })])

/** `arguments` are filled by the kernel, never by the model. */
export const transport = z.strictObject({
  kind: text(64),
  endpoint: text(2048).exactOptional(),
  arguments: z.record(name, transportArgument).default({}),
})
export type Transport = z.infer<typeof transport>

const credentialRequirement = z.strictObject({ name, kind: text(128), optional: z.boolean().default(false) })

const retry = z.strictObject({
  maxAttempts: positive.default(1),
  initialBackoffMs: positive.default(1000),
  maxBackoffMs: positive.default(60_000),
})

export const semanticRole = z.string().regex(/^[a-z0-9_-]{1,64}$/, 'must be 1 to 64 of a-z, 0-9, _ and -')

export const skillAction = z
  .strictObject({
    name,
    description: prose,
    inputSchema: object,
    outputSchema: object.exactOptional(),
    sideEffect,
    risk,
    permissions: names,
    credentials: z.array(credentialRequirement).max(20).default([]),
    timeoutMs: positive.max(3_600_000).default(30_000),
    retry: retry.default({ maxAttempts: 1, initialBackoffMs: 1000, maxBackoffMs: 60_000 }),
    idempotency: z.enum(['none', 'supported', 'required']),
    dryRunAction: name.exactOptional(),
    compensationAction: name.exactOptional(),
    emittedArtifactTypes: names,
    emittedEventTypes: names,
    transport: transport.exactOptional(),
    semanticArguments: z.record(semanticRole, name).default({}),
  })
  .superRefine((action, ctx) => {
    const issue = (at: string, message: string): void => ctx.addIssue({ code: 'custom', path: [at], message })
    const isAboveRead = action.sideEffect !== 'none' && action.sideEffect !== 'read'
    if (isAboveRead && action.idempotency === 'none') issue('idempotency', 'must not be none above read')
    const { properties } = action.inputSchema
    const known = new Set(Object.keys(properties !== null && typeof properties === 'object' ? properties : {}))
    for (const property of Object.values(action.semanticArguments)) {
      if (!known.has(property)) issue('semanticArguments', `${property} is no property of inputSchema`)
    }
  })
export type SkillAction = z.infer<typeof skillAction>

const prompt = z.strictObject({
  instructions: prose,
  alwaysActive: z.boolean().default(false),
  userInvocable: z.boolean().default(false),
  disableModelInvocation: z.boolean().default(false),
  allowedTools: names,
  credentials: z.array(credentialRequirement).max(20).default([]),
})

const requirements = z.strictObject({
  operatingSystems: names,
  executables: names,
  anyExecutables: names,
  environment: names,
  configuration: names,
  compatibility: text(2048).exactOptional(),
  alwaysAvailable: z.boolean().default(false),
})

const resource = z.strictObject({
  path: text(1024),
  kind: z.enum(['script', 'reference', 'asset', 'resource']),
  mediaType: text(256),
  digest: text(256),
  size: z.int().min(0),
})

const source = z.strictObject({
  identity: text(2048),
  format: text(128),
  registry: text(2048).exactOptional(),
  publisher: text(256).exactOptional(),
  reference: text(2048).exactOptional(),
  resolvedVersion: text(128).exactOptional(),
  digest: text(256),
  license: text(256).exactOptional(),
  homepage: text(2048).exactOptional(),
  trust: object.default({}),
})

export const skillDefinition = z
  .strictObject({
    id: text(256),
    version,
    name: text(256),
    description: prose.exactOptional(),
    icon: text(2048).exactOptional(),
    configurationKey: text(256).exactOptional(),
    actions: z.record(name, skillAction).default({}),
    transport: transport.exactOptional(),
    prompt: prompt.exactOptional(),
    requirements: requirements.exactOptional(),
    /** Data only: never run. */
    installers: z.array(object).max(100).default([]),
    resources: z.array(resource).max(2048).default([]),
    source: source.exactOptional(),
  })
  .superRefine(({ actions, prompt: instructions }, ctx) => {
    const issue = (path: string[], message: string): void => ctx.addIssue({ code: 'custom', path, message })
    if (Object.keys(actions).length === 0 && !instructions)
      issue(['actions'], 'must hold an action, where there is no prompt')
    for (const [key, action] of Object.entries(actions)) {
      if (action.name !== key) issue(['actions', key, 'name'], 'must be its key')
      for (const other of [action.dryRunAction, action.compensationAction]) {
        if (other !== undefined && !Object.hasOwn(actions, other)) issue(['actions', key], `${other} is no action`)
      }
    }
  })
export type SkillDefinition = z.infer<typeof skillDefinition>

/** How an action is carried out: its own way, else that of its skill. */
export const transportOf = (skill: SkillDefinition, action: SkillAction): Transport | undefined =>
  action.transport ?? skill.transport
