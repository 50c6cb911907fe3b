import type { JsonObject, Party, Recorded } from './types.ts'
import type { Risk, SideEffect } from './work-types.ts'

/** Wire shapes of skills in the hands of deployments: kernel-2.md 2. */

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json }

export interface BindingContent {
  skillId: string
  skillVersion: string
  sourceIdentity?: string
  /** Empty only with `enablePrompt`. */
  allowedActions?: string[]
  enablePrompt?: boolean
  maximumRisk: Risk
  /** By action and field. */
  argumentRestrictions?: Record<string, Record<string, { const?: Json; enum?: Json[] }>>
  /** By what the skill requires. */
  credentials?: Record<string, { kind: string; id: string }>
  config?: JsonObject
}

/** Defaults are filled in. */
export interface Binding extends Recorded, Required<Omit<BindingContent, 'sourceIdentity'>> {
  sourceIdentity?: string
  deploymentId: string
  disabled: boolean
  lifecycle: {
    revision: number
    action: 'created' | 'updated' | 'enabled' | 'disabled' | 'upgraded'
    actor: Party
    reason: string
    at: string
  }[]
}

export interface BindingChange {
  /** 0 makes a new one. */
  expectedRevision: number
  actor: Party
  reason: string
}
export type PutBinding = BindingChange & { binding: BindingContent }

export interface ChangedBinding {
  apiVersion: '2'
  binding: Binding
}

export interface BindingList {
  apiVersion: '2'
  deploymentId: string
  /** Disabled ones too. */
  items: Binding[]
}

export interface SkillActionQuery {
  semanticRole?: readonly string[]
  sideEffect?: readonly SideEffect[]
}

export interface SkillAction {
  /** `skill.action` */
  name: string
  description: string
  bindingId: string
  bindingRevision: number
  deploymentId: string
  skillId: string
  version: string
  action: string
  inputSchema: JsonObject
  semanticArguments: Record<string, string>
  risk: Risk
  sideEffect: SideEffect
}
