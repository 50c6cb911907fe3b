import { parseUsd } from '../../../src/gateway/cost/money.ts'
import type { UsageRecord } from '../../../src/gateway/model.ts'
import { costOf, toldAs, usageOf } from './calls.ts'
import type { Seen } from './client.ts'
import type { LoadProvider } from './provider.ts'

/** Everything in which usage records differ from what clients saw and the provider told; empty when they agree to the token. */
export function differences(
  seen: readonly Seen[],
  records: readonly UsageRecord[],
  { told, came }: Pick<LoadProvider, 'told' | 'came'>,
): string[] {
  const byRequest = new Map<string, UsageRecord[]>()
  for (const record of records) {
    byRequest.set(record.request_id, [...(byRequest.get(record.request_id) ?? []), record])
  }
  return seen.flatMap((each) => {
    const found = byRequest.get(each.id) ?? []
    const [record] = found
    const name = `${each.id} (${each.sort}, ${each.end})`
    // Who hangs up may be gone before the server has read anything.
    const mayLack = each.end === 'lost' || each.status === 503 || (each.end === 'left' && !came.has(each.number))
    if (!record) return mayLack ? [] : [`${name}: no record`]
    if (found.length > 1) return [`${name}: ${found.length} records`]
    return faultsOf(each, record, told).map((fault) => `${name}: ${fault}`)
  })
}

function faultsOf(seen: Seen, record: UsageRecord, told: ReadonlyMap<number, number>): string[] {
  const { outcome, cost_state: state, status, input_tokens: input, output_tokens: output } = record
  const number = toldAs(seen.number)
  const usage = usageOf(number)
  const faults: string[] = []
  const expectThat = (holds: boolean, otherwise: string): void => void (holds || faults.push(otherwise))
  if (outcome === 'cached') {
    expectThat(record.cost_usd === '0' && input === null, 'a hit must cost nothing')
  } else if (state === 'exact') {
    const expected = seen.sort === 'embeddings' ? { ...usage, output: 0, cached: 0 } : usage
    const tokens = { input, cached: record.cache_read_tokens, output }
    expectThat(isEqual(tokens, expected), `${JSON.stringify(tokens)} tokens instead of ${JSON.stringify(expected)}`)
    expectThat(parseUsd(record.cost_usd ?? '') === costOf(expected), `it costs ${record.cost_usd}`)
    expectThat((told.get(number) ?? 0) > 0, 'nobody told these tokens')
  }
  if (seen.end === 'whole' && seen.status === 200) {
    expectThat(outcome === 'ok' || outcome === 'cached', `the outcome is ${outcome}`)
    expectThat(state === 'exact', `the cost is ${state}`)
  } else if (seen.end === 'whole') {
    expectThat(status === seen.status && input === null, `status ${status}, ${input} tokens`)
  } else if (seen.end === 'broken') {
    expectThat(outcome === 'error' && state === 'estimated', `the outcome is ${outcome}, the cost ${state}`)
    expectThat(output === Math.ceil((seen.words * 5) / 4), `${output} tokens of ${seen.words} words`)
  } else if (seen.end === 'left') {
    // The answer, or a refusal, may have been on its way.
    const isAnswered = state === 'exact' || input === null
    expectThat(outcome === 'client_closed' || isAnswered, `the outcome is ${outcome}`)
    if (!isAnswered) expectThat((output ?? 0) >= Math.floor((seen.words * 5) / 4), 'less than the client saw')
  }
  return faults
}

const isEqual = (a: object, b: object): boolean => JSON.stringify(a) === JSON.stringify(b)
