import { toTimestamp } from '../../base/clock.ts'
import { GatewayError } from '../errors.ts'
import type { ListedModel } from './parts.ts'

/** GET `v1/models` in either shape. Contract: gateway.md 3.2. */
export function modelList(models: readonly ListedModel[], isAnthropic: boolean): object {
  if (!isAnthropic) return { object: 'list', data: models.map(openAiModel) }
  return {
    data: models.map(anthropicModel),
    first_id: models[0]?.id ?? null,
    last_id: models.at(-1)?.id ?? null,
    has_more: false,
  }
}

/** GET `v1/models/{id}`. @throws GatewayError 404 for a name that the caller may not use */
export function oneModel(models: readonly ListedModel[], id: string, isAnthropic: boolean): object {
  const found = models.find((model) => model.id === id)
  if (!found) throw new GatewayError('model_not_found', 'there is no such model that you may use', { param: 'model' })
  return isAnthropic ? anthropicModel(found) : openAiModel(found)
}

const openAiModel = ({ id, created, owned_by }: ListedModel): object => ({ id, object: 'model', created, owned_by })

const anthropicModel = ({ id, created }: ListedModel): object => ({
  type: 'model',
  id,
  display_name: id,
  created_at: toTimestamp(created * 1000),
})
