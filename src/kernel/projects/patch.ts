import type * as z from 'zod'
import { canonicalJson } from '../../base/canonical-json.ts'
import { defined } from '../../base/defined.ts'
import { aboutProject, type Change } from '../change.ts'
import { conflict, expectRevision, invalid } from '../errors.ts'
import type { patchProject as patchBody, Project, ProjectStatus } from '../model/project.ts'
import { projects, saveProject } from '../store/projects.ts'
import { lockRecord } from '../store/records.ts'
import { checkObjectives } from './check.ts'
import { withTimes } from './hypotheses.ts'

const MOVES: Record<ProjectStatus, readonly ProjectStatus[]> = {
  draft: ['active', 'canceled', 'archived'],
  active: ['paused', 'completed', 'failed', 'canceled'],
  paused: ['active', 'failed', 'canceled'],
  completed: ['archived'],
  failed: ['archived'],
  canceled: ['archived'],
  archived: [],
}

/**
 * Changes what is given of a project; lists replace.
 * @throws not_found; invalid when nothing would change; conflict for an archived project, an illegal move or another revision;
 * as `checkObjectives`. Contract: kernel-1.md 4
 */
export async function patchProject(
  change: Change,
  id: string,
  { actor: _a, scope: _s, expectedRevision, clearBudget, hypotheses, ...fields }: z.infer<typeof patchBody>,
): Promise<Project> {
  const { tx, scope, now, at } = change
  const before = await lockRecord(tx, projects, scope, id)
  const next: Project = { ...before, ...defined(fields) }
  if (hypotheses) next.hypotheses = withTimes(hypotheses, at, before.hypotheses)
  if (clearBudget) delete next.budget
  if (fields.objectiveRefs) await checkObjectives(change, next)
  checkMove(before.status, next.status)
  expectRevision(expectedRevision, before.revision)
  if (canonicalJson(next) === canonicalJson(before)) throw invalid('nothing would change')
  const saved = await saveProject(tx, next, now)
  change.report({
    ...aboutProject(saved),
    eventType: 'project.updated',
    summary: `Updated: ${saved.title}`,
    payload: { status: saved.status, revision: saved.revision },
  })
  return saved
}

function checkMove(from: ProjectStatus, to: ProjectStatus): void {
  if (from === 'archived') throw conflict('project is archived: it cannot change any more')
  if (from !== to && !MOVES[from].includes(to)) throw conflict(`a ${from} project cannot become ${to}`)
}
