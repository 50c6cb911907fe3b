import type { Clock } from '../base/clock.ts'
import type { Database, Queryable } from '../database/database.ts'
import type { ProjectScope } from './caller.ts'
import { notFound } from './errors.ts'
import type { ItemChanges, ItemRequest, WorkItem } from './model.ts'
import type { RepositoryLinks } from './ports.ts'
import { agentSessionExists } from './store/agent-sessions.ts'
import {
  findWorkItem,
  insertWorkItem,
  listWorkItems,
  toWorkItem,
  updateWorkItem,
  type WorkItemValues,
} from './store/work-items.ts'

/** What there is to do in a project. Contract: git-host.md 2.2, 2.5. */
export class WorkItems {
  readonly #database: Database
  readonly #clock: Clock
  readonly #links: RepositoryLinks

  constructor(database: Database, clock: Clock, links: RepositoryLinks) {
    this.#database = database
    this.#clock = clock
    this.#links = links
  }

  async list(scope: ProjectScope, after: number, limit: number): Promise<WorkItem[]> {
    return (await listWorkItems(this.#database, scope, after, limit)).map(toWorkItem)
  }

  /** @throws not_found 404 */
  async get(scope: ProjectScope, id: number): Promise<WorkItem> {
    const row = await findWorkItem(this.#database, scope, id)
    if (!row) throw notFound('work_item', id)
    return toWorkItem(row)
  }

  /** @throws not_found 404 for an agent session or a repository link of another project */
  create(scope: ProjectScope, request: ItemRequest): Promise<WorkItem> {
    const now = this.#clock.now()
    return this.#database.transaction(async (tx) => {
      await this.#checkReferences(tx, scope, request)
      return toWorkItem(await insertWorkItem(tx, scope, changedValues(EMPTY, request, now), now))
    })
  }

  /** `completed_at` is when the item became done; it goes when the item is taken up again. @throws as `create` */
  change(scope: ProjectScope, id: number, changes: ItemChanges): Promise<WorkItem> {
    return this.#database.transaction(async (tx) => {
      const old = await findWorkItem(tx, scope, id, { locked: true })
      if (!old) throw notFound('work_item', id)
      await this.#checkReferences(tx, scope, changes)
      const item = { ...changedValues(old, changes, this.#clock.now()), id }
      await updateWorkItem(tx, scope, item)
      return toWorkItem(item)
    })
  }

  async #checkReferences(tx: Queryable, scope: ProjectScope, { session_id, repository_link_id }: ItemChanges) {
    if (typeof session_id === 'string' && !(await agentSessionExists(tx, scope, { session_id }))) {
      throw notFound('session', session_id)
    }
    if (typeof repository_link_id === 'number' && !(await this.#links.exists(tx, scope, repository_link_id))) {
      throw notFound('repository_link', repository_link_id)
    }
  }
}

const EMPTY: WorkItemValues = {
  type: 'feature',
  title: '',
  description: null,
  status: 'todo',
  branch: null,
  repository_link_id: null,
  session_id: null,
  completed_at: null,
}

/** What is not named stays; null clears. */
function changedValues(old: WorkItemValues, changes: ItemChanges, now: number): WorkItemValues {
  const { type = old.type, title = old.title, description = old.description, status = old.status } = changes
  const { branch = old.branch, repository_link_id = old.repository_link_id, session_id = old.session_id } = changes
  const completed_at = status === 'done' ? (old.completed_at ?? now) : null
  return { type, title, description, status, branch, repository_link_id, session_id, completed_at }
}
