import type * as z from 'zod'
import { activateVersion } from '../registry/activate.ts'
import {
  activateAmendment,
  authorizeDecision,
  decideAmendment,
  evaluateAmendment,
  type AmendmentPath,
} from '../registry/amendments.ts'
import { readDefinition, type RegistryFamily } from '../registry/family.ts'
import { proposeAmendment, type ProposeRequest } from '../registry/propose.ts'
import { replaceDeployment, type ReplaceRequest } from '../registry/replace.ts'
import type { Stepped } from '../registry/step.ts'
import {
  activateAmendment as activateAmendmentBody,
  activateVersion as activateVersionBody,
  decideAmendment as decideBody,
  evaluateAmendment as evaluateBody,
  type ActivationRecord,
} from '../model/deployment.ts'
import { findActivation, listActivations } from '../store/activations.ts'
import type { FamilyName } from '../store/definitions.ts'
import { listAmendments, listDeployed, readAmendment } from '../store/deployments.ts'
import { readRecord } from '../store/records.ts'
import { page, read, write } from './handlers.ts'
import { integer, several } from './query.ts'
import type { Asked, Handlers, Written } from './route.ts'

/** What is served alike of the deployments of agents and of teams. Contract: kernel-1.md 11, 12 */

/** All, or so many of them. Contract: kernel-1.md 1.7 */
const LIMIT = integer(1, 500).default(Number.MAX_SAFE_INTEGER - 1)
export const BOUNDS = { limit: LIMIT, offset: integer(0, 1_000_000).exactOptional() }

interface Shapes<F extends FamilyName> {
  states: readonly string[]
  replace: z.ZodType<ReplaceRequest<F>>
  propose: z.ZodType<ProposeRequest<F>>
}

type Params = Asked<unknown>['params']

/** The routes of one family's deployments, with their activations and amendments. Contract: kernel-1.md 11, 12. */
export const deploymentRoutes = <F extends FamilyName>(family: RegistryFamily<F>, shapes: Shapes<F>): Handlers => ({
  ...ownRoutes(family, shapes),
  ...amendmentRoutes(family, shapes),
})

function ownRoutes<F extends FamilyName>(family: RegistryFamily<F>, { states, replace }: Shapes<F>): Handlers {
  const { name, deployments } = family
  const path = `/${name}-deployments`
  const replayStep = stepReplay(family)
  return {
    [`GET ${path}`]: read(
      { ...BOUNDS, excludeStatuses: several(states).exactOptional() },
      async ({ context, scope, query }) => ({ items: await listDeployed(context.store.database, name, scope, query) }),
    ),
    [`GET ${path}/{id}`]: read({}, async ({ context, scope, params: { id = '' } }) => {
      const { database } = context.store
      const deployment = await readRecord(database, deployments, scope, id)
      const version = { id: deployment.definitionId, version: deployment.activeVersion }
      return { deployment, definition: await readDefinition(database, name, scope, version) }
    }),
    [`PUT ${path}/{id}`]: write(
      replace,
      {
        scopes: ({ deployment }) => [deployment.scope],
        replay: async (asked, revision) => {
          const { deployment, activation: audit } = await replayStep(asked, revision)
          return { deployment, audit }
        },
      },
      async ({ change, params: { id = '' }, body }) => {
        const { deployment, activation: audit } = await replaceDeployment(change, family, id, body)
        return { recordId: String(deployment.revision), answer: () => ({ deployment, audit }) }
      },
    ),
    [`GET ${path}/{id}/activations`]: page(
      {},
      async ({ context, scope, params: { id = '' } }, request) => {
        await readRecord(context.store.database, deployments, scope, id)
        return listActivations(context.store.database, name, scope, id, request)
      },
      LIMIT,
    ),
    [`POST ${path}/{id}/activations`]: write(
      activateVersionBody,
      { replay: replayStep },
      async ({ change, params: { id = '' }, body }) => stepped(await activateVersion(change, family, id, body)),
    ),
  }
}

const amendmentOf = ({ id: deploymentId = '', amendmentId: id = '' }: Params): AmendmentPath => ({ deploymentId, id })

function amendmentRoutes<F extends FamilyName>(family: RegistryFamily<F>, { propose }: Shapes<F>): Handlers {
  const { name, deployments } = family
  const path = `/${name}-deployments/{id}/amendments`
  const readOne = ({ context, scope, params }: Asked<unknown>): Promise<object> =>
    readAmendment(context.store.database, name, scope, amendmentOf(params))
  const replayStep = stepReplay(family)
  return {
    [`GET ${path}`]: read(BOUNDS, async ({ context, scope, params: { id = '' }, query }) => {
      await readRecord(context.store.database, deployments, scope, id)
      return { items: await listAmendments(context.store.database, name, scope, id, query) }
    }),
    [`GET ${path}/{amendmentId}`]: read({}, readOne),
    [`POST ${path}`]: write(
      propose,
      {
        replay: ({ context, scope, params: { id: deploymentId = '' } }, id) =>
          readAmendment(context.store.database, name, scope, { deploymentId, id }),
      },
      async ({ change, params: { id = '' }, body, creation }) => {
        const amendment = await proposeAmendment(change, family, id, body, creation)
        return { recordId: amendment.id, status: 201, answer: () => amendment }
      },
    ),
    [`POST ${path}/{amendmentId}/evaluations`]: write(
      evaluateBody,
      { replay: readOne },
      async ({ change, params, body }) => {
        const amendment = await evaluateAmendment(change, family, amendmentOf(params), body)
        return { recordId: amendment.id, answer: () => amendment }
      },
    ),
    [`POST ${path}/{amendmentId}/decisions`]: write(
      decideBody,
      {
        replay: readOne,
        before: ({ context, scope, params, query: body }, by) =>
          authorizeDecision(context, family, { scope, path: amendmentOf(params), body, by }),
      },
      async ({ change, params, body }) => {
        const amendment = await decideAmendment(change, family, amendmentOf(params), body)
        return { recordId: amendment.id, answer: () => amendment }
      },
    ),
    [`POST ${path}/{amendmentId}/activations`]: write(
      activateAmendmentBody,
      {
        replay: async (asked, revision) => ({
          amendment: await readOne(asked),
          ...(await replayStep(asked, revision)),
        }),
      },
      async ({ change, params, body }) => stepped(await activateAmendment(change, family, amendmentOf(params), body)),
    ),
  }
}

/** Steps are found again by the revision that they made. */
export const stepped = <F extends FamilyName>(step: Stepped<F>): Written => ({
  recordId: String(step.deployment.revision),
  answer: () => step,
})

/** The deployment as it is now, with the record of the step that was made. */
export const stepReplay =
  <F extends FamilyName>({ name, deployments }: RegistryFamily<F>) =>
  async (
    { context, scope, params: { id = '' } }: Pick<Asked<unknown>, 'context' | 'scope' | 'params'>,
    revision: string,
  ): Promise<{ deployment: object; activation: ActivationRecord | undefined }> => {
    const { database } = context.store
    return {
      deployment: await readRecord(database, deployments, scope, id),
      activation: await findActivation(database, name, scope, id, Number(revision)),
    }
  }
