import type { Clock } from '../base/clock.ts'
import type { IdSource } from '../base/ids.ts'
import type { Database } from '../database/database.ts'
import type { Caller, ProjectScope } from './caller.ts'
import { notFound } from './errors.ts'
import type { AgentSession, SessionRequest } from './model.ts'
import type { RepositoryLinks } from './ports.ts'
import {
  agentSessionExists,
  insertAgentSession,
  listAgentSessions,
  updateAgentSessionStatus,
} from './store/agent-sessions.ts'
import { findWorkItem } from './store/work-items.ts'

/** Sessions in which agents work in a project for a user. Contract: git-host.md 2.2, 2.5. */
export class AgentSessions {
  readonly #database: Database
  readonly #clock: Clock
  readonly #ids: IdSource
  readonly #links: RepositoryLinks

  constructor(database: Database, clock: Clock, ids: IdSource, links: RepositoryLinks) {
    this.#database = database
    this.#clock = clock
    this.#ids = ids
    this.#links = links
  }

  list(scope: ProjectScope, after: number, limit: number): Promise<AgentSession[]> {
    return listAgentSessions(this.#database, scope, after, limit)
  }

  /** @throws not_found 404 */
  async require(scope: ProjectScope, sid: number): Promise<void> {
    if (!(await agentSessionExists(this.#database, scope, { sid }))) throw notFound('session', sid)
  }

  /** @throws not_found 404 for a work item or a repository link of another project */
  create({ user }: Caller, scope: ProjectScope, request: SessionRequest): Promise<AgentSession> {
    const { kind = 'work', branch = null, repository_link_id = null, work_item_id = null } = request
    const session_id = this.#ids('session-')
    return this.#database.transaction(async (tx) => {
      if (work_item_id !== null && !(await findWorkItem(tx, scope, work_item_id))) {
        throw notFound('work_item', work_item_id)
      }
      if (repository_link_id !== null && !(await this.#links.exists(tx, scope, repository_link_id))) {
        throw notFound('repository_link', repository_link_id)
      }
      const session = { session_id, user_id: user.id, kind, branch, repository_link_id, work_item_id }
      return insertAgentSession(tx, scope, { ...session, status: 'active' }, this.#clock.now())
    })
  }

  /** @throws not_found 404 */
  async setStatus(scope: ProjectScope, sid: number, status: AgentSession['status']): Promise<AgentSession> {
    const session = await this.#database.transaction((tx) => updateAgentSessionStatus(tx, scope, sid, status))
    if (!session) throw notFound('session', sid)
    return session
  }
}
