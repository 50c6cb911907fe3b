import { activityRoutes } from './activity.ts'
import { agentRoutes } from './agents.ts'
import { approvalRoutes } from './approvals.ts'
import { skillBindingRoutes } from './bindings.ts'
import { callRoutes } from './calls.ts'
import { objectiveRoutes } from './objectives.ts'
import { projectRoutes } from './projects.ts'
import { requestRoutes } from './requests.ts'
import type { Handlers } from './route.ts'
import { runRoutes } from './runs.ts'
import { teamRoutes } from './teams.ts'
import { turnRoutes } from './turns.ts'

/** What is served of the capability table. */
export const HANDLERS: Handlers = {
  ...activityRoutes,
  ...agentRoutes,
  ...approvalRoutes,
  ...callRoutes,
  ...objectiveRoutes,
  ...projectRoutes,
  ...requestRoutes,
  ...runRoutes,
  ...skillBindingRoutes,
  ...teamRoutes,
  ...turnRoutes,
}
