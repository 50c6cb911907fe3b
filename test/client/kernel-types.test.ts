import { expectTypeOf, test } from 'vitest'
import type { z } from 'zod'
import type * as wire from '../../src/client/kernel/kernel-types.ts'
import type { SkillActionItem } from '../../src/kernel/actions/offer.ts'
import type * as action from '../../src/kernel/model/action.ts'
import type * as binding from '../../src/kernel/model/binding.ts'
import type * as definition from '../../src/kernel/model/definition.ts'
import type * as deployment from '../../src/kernel/model/deployment.ts'
import type * as objective from '../../src/kernel/model/objective.ts'
import type * as project from '../../src/kernel/model/project.ts'
import type * as request from '../../src/kernel/model/request.ts'
import type * as run from '../../src/kernel/model/run.ts'
import type * as turn from '../../src/kernel/model/turn.ts'
import type { shownRun } from '../../src/kernel/runs/shown.ts'

/** What a caller may send to a schema; the scope goes in by itself. */
type Sent<Schema extends z.ZodType> = Omit<z.input<Schema>, 'scope' | 'idempotencyKey'>

// Proven by the type check: at run time these do nothing.

test('records of the kernel fit the shapes of the client', () => {
  expectTypeOf<objective.Objective>().toExtend<wire.Objective>()
  expectTypeOf<keyof objective.Objective>().toEqualTypeOf<keyof wire.Objective>()
  expectTypeOf<keyof project.Project>().toEqualTypeOf<keyof wire.Project>()
  expectTypeOf<ReturnType<typeof shownRun>>().toExtend<wire.Run>()
  expectTypeOf<keyof ReturnType<typeof shownRun>>().toEqualTypeOf<keyof wire.Run>()
  expectTypeOf<turn.Turn>().toExtend<wire.Turn>()
  expectTypeOf<keyof turn.Turn>().toEqualTypeOf<keyof wire.Turn>()
  expectTypeOf<request.AgentRequest>().toExtend<wire.AgentRequest>()
  expectTypeOf<keyof request.AgentRequest>().toEqualTypeOf<keyof wire.AgentRequest>()
  expectTypeOf<action.ActionCall>().toExtend<wire.ActionCall>()
  expectTypeOf<action.Approval>().toExtend<wire.Approval>()
  expectTypeOf<keyof action.Approval>().toEqualTypeOf<keyof wire.Approval>()
  expectTypeOf<binding.Binding>().toExtend<wire.Binding>()
  expectTypeOf<keyof binding.Binding>().toEqualTypeOf<keyof wire.Binding>()
  expectTypeOf<keyof SkillActionItem>().toEqualTypeOf<keyof wire.SkillAction>()
  expectTypeOf<deployment.AgentDeployment>().toExtend<wire.AgentDeployment>()
  expectTypeOf<deployment.TeamDeployment>().toExtend<wire.TeamDeployment>()
  expectTypeOf<definition.AgentDefinition>().toExtend<wire.AgentDefinition>()
  expectTypeOf<definition.TeamDefinition>().toExtend<wire.TeamDefinition>()
})

test('what the client sends, the kernel takes', () => {
  expectTypeOf<wire.NewObjective>().toExtend<Sent<typeof objective.createObjective>>()
  expectTypeOf<wire.ObjectiveReplacement>().toExtend<Sent<typeof objective.replaceObjective>>()
  expectTypeOf<wire.NewRun>().toExtend<Sent<typeof run.createRun>>()
  expectTypeOf<wire.RunCommand>().toExtend<Sent<typeof run.runCommand>>()
  expectTypeOf<wire.NewAgentRequest>().toExtend<Sent<typeof request.createRequest>>()
  expectTypeOf<wire.AgentRequestResponse>().toExtend<Sent<typeof request.respondToRequest>>()
  expectTypeOf<wire.AgentRequestCompletion>().toExtend<Sent<typeof request.completeRequest>>()
  expectTypeOf<wire.CompletionReview>().toExtend<Sent<typeof request.reviewCompletion>>()
  expectTypeOf<wire.ApprovalDecision>().toExtend<Sent<typeof action.decideApproval>>()
  expectTypeOf<wire.AgentInstallation>().toExtend<Sent<typeof deployment.installAgent>>()
  expectTypeOf<wire.NewTeamDeployment>().toExtend<Sent<typeof deployment.deployTeam>>()
  expectTypeOf<wire.BindingContent>().toExtend<z.input<typeof binding.putBinding>['binding']>()
  expectTypeOf<wire.TeamManifest>().toExtend<Sent<typeof definition.registerTeam>>()
})
