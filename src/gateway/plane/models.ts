import { toTimestamp } from '../../base/clock.ts'
import { GatewayError, invalid } from '../errors.ts'
import { nearHint } from '../routing/names.ts'
import type { ListedModel } from './parts.ts'

/** What Anthropic's clients may ask for at once. */
const MOST = 1000

/**
 * GET `v1/models` in either shape, for Anthropic's clients page by page if they ask so. Contract: gateway.md 3.2.
 * @throws GatewayError 400
 */
export function modelList(models: readonly ListedModel[], isAnthropic: boolean, query: URLSearchParams): object {
  if (!isAnthropic) return { object: 'list', data: models.map(openAiModel) }
  const { page, hasMore } = pageOf(models, query)
  return {
    data: page.map(anthropicModel),
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
    has_more: hasMore,
  }
}

/** Those behind `after_id`, or the last ones before `before_id`: names are in order, and one that has gone keeps its place in it. */
function pageOf(models: readonly ListedModel[], query: URLSearchParams) {
  const [after, before, limit] = [query.get('after_id'), query.get('before_id'), query.get('limit')]
  const most = limit === null ? models.length : Number(limit)
  if (limit !== null && !(Number.isInteger(most) && most >= 1 && most <= MOST)) {
    throw invalid(`limit must be 1 to ${MOST}`, 'limit')
  }
  const left = models.filter(({ id }) => (after === null || id > after) && (before === null || id < before))
  const start = before === null ? 0 : Math.max(0, left.length - most)
  return { page: left.slice(start, start + most), hasMore: left.length > most }
}

/** GET `v1/models/{id}`. @throws GatewayError 404 for a name that the caller may not use */
export function oneModel(models: readonly ListedModel[], id: string, isAnthropic: boolean): object {
  const found = models.find((model) => model.id === id)
  if (!found) {
    const names = models.map((model) => model.id)
    throw new GatewayError('model_not_found', `there is no such model that you may use${nearHint(id, names)}`, {
      param: 'model',
    })
  }
  return isAnthropic ? anthropicModel(found) : openAiModel(found)
}

const openAiModel = ({ id, created, owned_by }: ListedModel): object => ({ id, object: 'model', created, owned_by })

const anthropicModel = ({ id, created }: ListedModel): object => ({
  type: 'model',
  id,
  display_name: id,
  created_at: toTimestamp(created * 1000),
})
