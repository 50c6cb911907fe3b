import * as z from 'zod'
import { disableBinding, putBinding, readBinding, readBindings, shownBinding } from '../actions/bindings.ts'
import { listSkillActions } from '../actions/offer.ts'
import { sideEffect } from '../model/action.ts'
import * as model from '../model/binding.ts'
import { semanticRole } from '../model/skill.ts'
import type { BindingOwner, KeptBinding } from '../store/bindings.ts'
import { agentDeployments } from '../store/deployments.ts'
import { readRecord } from '../store/records.ts'
import { read, write } from './handlers.ts'
import type { Asked, Handlers } from './route.ts'

/** Contract: kernel-2.md 2 */

const API_VERSION = '2'

const answer = (binding: KeptBinding): object => ({ apiVersion: API_VERSION, binding: shownBinding(binding) })

function bindingRoutes(family: BindingOwner['family']): Handlers {
  const ownerOf = (params: Readonly<Record<string, string>>): BindingOwner => ({
    family,
    deploymentId: params['id'] ?? '',
  })
  const replay = async ({ context, scope, params }: Asked<unknown>, id: string): Promise<object> =>
    answer(await readBinding(context.store.database, scope, ownerOf(params), id))
  const base = `/${family}-deployments/{id}/skill-bindings`
  return {
    [`GET ${base}`]: read({}, async ({ context, scope, params }) => {
      const owner = ownerOf(params)
      const items = await readBindings(context.store.database, scope, owner)
      return { apiVersion: API_VERSION, deploymentId: owner.deploymentId, items }
    }),
    [`PUT ${base}/{bindingId}`]: write(
      model.putBinding,
      { scopes: ({ binding }) => [binding.scope], replay },
      async ({ change, params, body, creation }) => {
        const id = params['bindingId'] ?? ''
        const binding = await putBinding(change, { ...ownerOf(params), id, creation }, body)
        return { recordId: id, status: binding.revision === 1 ? 201 : 200, answer: () => answer(binding) }
      },
    ),
    [`POST ${base}/{bindingId}/disable`]: write(model.disableBinding, { replay }, async ({ change, params, body }) => {
      const id = params['bindingId'] ?? ''
      const binding = await disableBinding(change, ownerOf(params), id, body)
      return { recordId: id, answer: () => answer(binding) }
    }),
  }
}

export const skillBindingRoutes: Handlers = {
  ...bindingRoutes('agent'),
  ...bindingRoutes('team'),
  'GET /agent-deployments/{id}/skill-actions': read(
    { semanticRole: z.array(semanticRole).exactOptional(), sideEffect: z.array(sideEffect).exactOptional() },
    async ({ context, scope, params, query }) => {
      const deploymentId = params['id'] ?? ''
      await readRecord(context.store.database, agentDeployments, scope, deploymentId)
      return { deploymentId, actions: await listSkillActions(context, scope, deploymentId, query) }
    },
  ),
}
