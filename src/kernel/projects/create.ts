import type * as z from 'zod'
import { aboutProject, type Change } from '../change.ts'
import type { createProject as createBody, Project } from '../model/project.ts'
import type { Creation } from '../model/fields.ts'
import { insertProject } from '../store/projects.ts'
import { checkObjectives } from './check.ts'
import { withTimes } from './hypotheses.ts'

/**
 * Makes a project, in any state.
 * @throws conflict when its id is taken; not_found, invalid as `checkObjectives`. Contract: kernel-1.md 4
 */
export async function createProject(
  change: Change,
  { actor: _a, scope: _s, idempotencyKey: _k, ...fields }: z.infer<typeof createBody>,
  creation: Creation,
): Promise<Project> {
  const { tx, scope, at, context } = change
  await checkObjectives(change, fields)
  const project = await insertProject(tx, {
    scope,
    id: context.newId(),
    revision: 1,
    createdAt: at,
    updatedAt: at,
    ...fields,
    hypotheses: withTimes(fields.hypotheses, at),
    ...creation,
  })
  change.report({
    ...aboutProject(project),
    eventType: 'project.created',
    summary: `Created: ${project.title}`,
    payload: { status: project.status, revision: project.revision },
  })
  return project
}
