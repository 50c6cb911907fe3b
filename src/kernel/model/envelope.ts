import type { BudgetPolicy, BudgetState, Usage } from './budget.ts'
import type { Owner } from './fields.ts'
import type { Intervention, PendingResult, RunKind, RunSource } from './run.ts'

/** All that a model sees of a run. Contract: kernel-1.md 14.3. */
export interface Envelope {
  /** Of the turn: an outcome must name it. */
  invocationId: string
  run: {
    id: string
    kind: RunKind
    source: RunSource
    owner: Owner
    turn: number
    deadline?: string
    entrypoint?: string
  }
  now: string
  goal: string
  context: Record<string, unknown>
  plan?: unknown
  checkpoint: Record<string, unknown>
  instructions: Instructions
  /** To whom work can be given. */
  eligibleAgents: EligibleAgent[]
  /** Each needs a disposition in the outcome. */
  skills: OfferedSkill[]
  actions: OfferedAction[]
  budget?: { limits: BudgetPolicy; used: Usage; state: BudgetState }
  /** What became of what the run waited for or proposed, the oldest first. */
  results: PendingResult[]
  guidance: Intervention[]
  /** What was wrong with the answer before: of a repair. */
  repair?: { attempt: number; errors: string[]; answer?: unknown }
}

/** Who the agent is; empty without an agent registry. */
export interface Instructions {
  systemPrompt?: string
  purpose?: string
  personality?: string
  operatingPrinciples?: string[]
  domainContext?: Record<string, unknown>
}

export interface EligibleAgent {
  id: string
  displayName: string
  purpose: string
}

export interface OfferedSkill {
  /** `id@version`, as dispositions name it. */
  skillRef: string
  instructions: string
}

export interface OfferedAction {
  bindingId: string
  skillId: string
  action: string
  description: string
  inputSchema: Record<string, unknown>
  risk: string
}
