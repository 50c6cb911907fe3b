import type { Queryable } from '../../database/database.ts'
import type { Owner, Scope } from '../model/fields.ts'
import type { Project, ProjectStatus } from '../model/project.ts'
import { insertRecord, saveRecord, type Family, type PageRequest, type RecordPage } from './records.ts'
import { scopeKey } from './scope-key.ts'
import { Conditions, ms } from './sql.ts'
import { walkRecords } from './walk.ts'

export const projects: Family<Project> = {
  table: 'kernel_projects',
  noun: 'project',
  columns: ({ status, owner, updatedAt }) => ({
    status,
    owner_type: owner.type,
    owner_id: owner.id,
    recency: -ms(updatedAt),
  }),
}

/** @throws conflict when the id is taken */
export async function insertProject(tx: Queryable, project: Project): Promise<Project> {
  await insertRecord(tx, projects, project)
  await linkObjectives(tx, project)
  return project
}

/** @throws conflict when another write came between */
export async function saveProject(tx: Queryable, project: Project, now: number): Promise<Project> {
  const saved = await saveRecord(tx, projects, project, now)
  await tx.run('DELETE FROM kernel_project_objectives WHERE scope = $1 AND project_id = $2', [
    scopeKey(project.scope),
    project.id,
  ])
  await linkObjectives(tx, project)
  return saved
}

async function linkObjectives(tx: Queryable, { scope, id, objectiveRefs }: Project): Promise<void> {
  for (const objectiveId of objectiveRefs) {
    await tx.run('INSERT INTO kernel_project_objectives (scope, objective_id, project_id) VALUES ($1, $2, $3)', [
      scopeKey(scope),
      objectiveId,
      id,
    ])
  }
}

export interface ProjectFilter {
  owner?: Owner
  status?: readonly ProjectStatus[]
  objectiveId?: string
}

/** The last changed first; kernel_projects_in_order, _by_owner, _by_status, the key of kernel_project_objectives. */
export function listProjects(
  db: Queryable,
  scope: Scope,
  { owner, status, objectiveId }: ProjectFilter,
  page: PageRequest & { now: number },
): Promise<RecordPage<Project>> {
  const key = scopeKey(scope)
  const where = (): Conditions => {
    const conditions = new Conditions()
      .and('t.scope = ?', key)
      .equal('t.owner_type', owner?.type)
      .equal('t.owner_id', owner?.id)
      .among('t.status', status)
    if (objectiveId === undefined) return conditions
    const served = 't.id IN (SELECT project_id FROM kernel_project_objectives WHERE scope = ? AND objective_id = ?)'
    return conditions.and(served, key, objectiveId)
  }
  return walkRecords(db, projects, { scope, where, columns: ['recency', 'id'], selector: 'project_id' }, page)
}
