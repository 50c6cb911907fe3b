import type { Clock } from '../base/clock.ts'
import type { Database, Queryable } from '../database/database.ts'
import { optional } from '../database/rows.ts'
import type { Caller, ProjectScope } from './caller.ts'
import { conflict, notFound, PlatformError } from './errors.ts'
import type { Member, MemberRole, Project, ProjectChanges, ProjectRequest, User } from './model.ts'
import { permissionsOf } from './permissions.ts'
import { takeLock } from './store/locks.ts'
import { deleteMember, listMembers, saveMember } from './store/members.ts'
import {
  findProject,
  insertProject,
  listProjects,
  projectNameExists,
  updateProject,
  type ProjectRow,
} from './store/projects.ts'
import { findUser } from './store/users.ts'

/** Projects of an organization and who takes part in them. Contract: git-host.md 2.2, 2.5. */
export class Projects {
  readonly #database: Database
  readonly #clock: Clock

  constructor(database: Database, clock: Clock) {
    this.#database = database
    this.#clock = clock
  }

  /** @throws not_found 404, also for a project that the caller may not read */
  async require({ user }: Caller, id: number): Promise<Project> {
    const row = await findProject(this.#database, scopeOf(user, id), user.id)
    const project = row && toProject(user, row)
    if (!project?.permissions.includes('project:read')) throw notFound('project', id)
    return project
  }

  /** Those that the caller may read. */
  async list({ user }: Caller, after: number, limit: number): Promise<Project[]> {
    const selection = { organizationId: user.organization_id, userId: user.id, all: user.role === 'admin' }
    const rows = await listProjects(this.#database, selection, after, limit)
    return rows.map((row) => toProject(user, row))
  }

  /** @throws conflict 409 `name_taken` */
  async create({ user }: Caller, { name, source_control = null }: ProjectRequest): Promise<Project> {
    const id = await this.#database.transaction(async (tx) => {
      await refuseTaken(tx, user.organization_id, name)
      return insertProject(tx, user.organization_id, name, source_control, this.#clock.now())
    })
    return toProject(user, { id, name, source_control, membership: null })
  }

  /**
   * Linked repositories set and clear `git_host` themselves: with one, the source control cannot be changed here.
   * @throws conflict 409 `name_taken`, provider_conflict 409
   */
  change({ user }: Caller, id: number, changes: ProjectChanges): Promise<Project> {
    const scope = scopeOf(user, id)
    return this.#database.transaction(async (tx) => {
      await takeLock(tx, `projects of ${user.organization_id}`)
      const old = await findProject(tx, scope, user.id)
      if (!old) throw notFound('project', id)
      const { name = old.name, source_control = old.source_control } = changes
      if (name !== old.name) await refuseTaken(tx, user.organization_id, name, id)
      if (old.source_control === 'git_host' && source_control !== 'git_host') {
        throw new PlatformError('provider_conflict', 'repositories are linked to this project: unlink them first')
      }
      await updateProject(tx, scope, name, source_control)
      return toProject(user, { ...old, name, source_control })
    })
  }

  members(scope: ProjectScope, after: number, limit: number): Promise<Member[]> {
    return listMembers(this.#database, scope, after, limit)
  }

  /** Adds a member, or gives one another role. @throws not_found 404 for a user of no or another organization */
  setMember(scope: ProjectScope, userId: number, role: MemberRole): Promise<{ member: Member; isNew: boolean }> {
    return this.#database.transaction(async (tx) => {
      if (!(await findUser(tx, scope.organizationId, userId))) throw notFound('user', userId)
      return { isNew: await saveMember(tx, scope, userId, role), member: { user_id: userId, role } }
    })
  }

  /** @throws not_found 404 */
  async removeMember(scope: ProjectScope, userId: number): Promise<void> {
    const removed = await this.#database.transaction((tx) => deleteMember(tx, scope, userId))
    if (removed === 0) throw notFound('member', userId)
  }
}

const scopeOf = (user: User, projectId: number): ProjectScope => ({ organizationId: user.organization_id, projectId })

const toProject = (user: User, row: ProjectRow): Project => ({
  id: row.id,
  name: row.name,
  ...optional('source_control', row.source_control),
  permissions: permissionsOf(user, row.membership),
})

async function refuseTaken(tx: Queryable, organizationId: number, name: string, except?: number): Promise<void> {
  await takeLock(tx, `projects of ${organizationId}`)
  if (await projectNameExists(tx, organizationId, name, except)) {
    throw conflict('name_taken', `a project named ${name} exists`)
  }
}
