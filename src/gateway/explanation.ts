import type { Caller } from '../platform/caller.ts'
import { notFound, RestError } from '../platform/errors.ts'
import { isAdmin } from './access.ts'
import { GatewayError } from './errors.ts'
import type { Surface } from './model.ts'
import type { ExplainRoute } from './ports.ts'
import type { RouteExplanation } from './routing/router.ts'
import type { States } from './state/states.ts'

/**
 * Why a name goes where it goes, for the caller or one of the keys that the caller sees. Private credentials of another
 * user are left out, also where that user's key would use them. Contract: gateway.md 3.5.
 * @throws not_found 404, and RestError where the call would be refused
 */
export function explainTo(
  { user, ...session }: Caller,
  states: States,
  explain: ExplainRoute,
  { model, surface, keyId }: { model: string; surface: Surface; keyId: number | undefined },
): RouteExplanation {
  const state = states.get(user.organization_id)
  if (!state) throw notFound('organization', user.organization_id)
  const key = state.keys.find(({ id }) => id === keyId)
  const isOwn = isAdmin({ user, ...session }) || key?.userId === user.id
  if (keyId !== undefined && !(key && isOwn)) throw notFound('key', keyId)
  const isHidden = (id: number): boolean => {
    const owner = state.credentials.find((credential) => credential.id === id)?.userId
    return owner !== undefined && owner !== user.id
  }
  try {
    const { name, candidates } = explain({ state, userId: key ? key.userId : user.id, key }, model, surface)
    return { name, candidates: candidates.filter(({ credential_id }) => !isHidden(credential_id)) }
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    throw new RestError(
      error.status,
      error.code,
      error.message,
      error.param === undefined ? {} : { field: error.param },
    )
  }
}
