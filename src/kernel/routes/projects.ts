import { createProject, patchProject, PROJECT_STATES } from '../model/project.ts'
import { createProject as create } from '../projects/create.ts'
import { patchProject as patch } from '../projects/patch.ts'
import { listProjects, projects } from '../store/projects.ts'
import { id as idSchema } from '../model/fields.ts'
import { readRecord } from '../store/records.ts'
import { page, read, write } from './handlers.ts'
import { ownerFilter, ownerOf, several } from './query.ts'
import type { Handlers } from './route.ts'

/** Contract: kernel-1.md 4 */
export const projectRoutes: Handlers = {
  'POST /projects': write(
    createProject,
    { replay: ({ context, scope }, id) => readRecord(context.store.database, projects, scope, id) },
    async ({ change, body, creation }) => {
      const project = await create(change, body, creation)
      return { recordId: project.id, status: 201, answer: () => project }
    },
  ),
  'GET /projects': page(
    { ...ownerFilter, status: several(PROJECT_STATES).exactOptional(), objectiveId: idSchema.exactOptional() },
    ({ context, scope, query: { ownerType, ownerId, ...filter } }, request) => {
      const owner = ownerOf({ ...(ownerType && { ownerType }), ...(ownerId !== undefined && { ownerId }) })
      return listProjects(
        context.store.database,
        scope,
        { ...filter, ...owner },
        { ...request, now: context.store.now() },
      )
    },
  ),
  'GET /projects/{id}': read({}, ({ context, scope, params: { id = '' } }) =>
    readRecord(context.store.database, projects, scope, id),
  ),
  'PATCH /projects/{id}': write(
    patchProject,
    { replay: ({ context, scope }, id) => readRecord(context.store.database, projects, scope, id) },
    async ({ change, params: { id = '' }, body }) => {
      const project = await patch(change, id, body)
      return { recordId: project.id, answer: () => project }
    },
  ),
}
