import * as z from 'zod'
import { budgetPolicy, type BudgetPolicy } from './budget.ts'
import { body, count, expectedRevision, free, KEY, owner, prose, resources, text, type Recorded } from './fields.ts'

/** Contract: kernel-1.md 3. */

export const OBJECTIVE_STATES = ['draft', 'active', 'paused', 'satisfied', 'failed', 'retired'] as const
export type ObjectiveStatus = (typeof OBJECTIVE_STATES)[number]

/** What a PUT replaces: an absent optional field returns to its default or is removed. */
const CONTENT = {
  title: text(512),
  goal: prose,
  priority: count.default(0),
  executionPolicy: z
    .strictObject({
      /** 0 is unlimited. */
      maximumConcurrentRuns: count.default(0),
      resourceCapacities: resources(count).default({}),
    })
    .exactOptional(),
  budget: budgetPolicy.exactOptional(),
  constraints: free.exactOptional(),
  successCriteria: free.exactOptional(),
  progressSummary: prose.exactOptional(),
}

const content = z.strictObject(CONTENT)
type ObjectiveContent = z.infer<typeof content>

export const createObjective = body({ ...CONTENT, ...KEY, owner, status: z.enum(OBJECTIVE_STATES).default('draft') })

export const replaceObjective = body({
  ...CONTENT,
  expectedRevision,
  owner: owner.exactOptional(),
  status: z.enum(OBJECTIVE_STATES).exactOptional(),
})

export interface Objective extends Recorded, ObjectiveContent {
  owner: z.infer<typeof owner>
  status: ObjectiveStatus
  /** What runs were given of the budget, by run. */
  budgetAllocations: Record<string, BudgetPolicy>
}
