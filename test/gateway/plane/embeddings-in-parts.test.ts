import { expect, test } from 'vitest'
import { classes } from './pair.ts'
import { credentialAt, json, refusal, startRig, startUpstream, type Script } from './support.ts'

const MODEL = 'amazon.titan-embed'
const PART = JSON.stringify({ embedding: [1, 2], inputTextTokenCount: 7 })
/** Four go out at once, and each answer lets another go: the last goes when `one` and `two` have been read. */
const heldUp = (last: string) => ({ model: MODEL, input: ['one', 'two', 'silent', 'silent', 'silent', last] })
const BUDGET = { limit_usd: '1', window: 'day', unknown_price: 'deny' } as const

const titan: Script = (response, request) => {
  const { inputText }: { inputText: string } = JSON.parse(request.body)
  if (inputText === 'silent') return
  if (inputText === 'bad') return refusal(500)(response, request)
  return json(200, inputText === 'empty' ? '{}' : PART)(response, request)
}

/** Providers that take one text a call, each standing in for those before it, and what became of the money set aside. */
async function rig(scripts: readonly Script[]) {
  const upstreams = await Promise.all(scripts.map((script) => startUpstream(script)))
  const credentials = upstreams.map((upstream, i) =>
    credentialAt(i + 1, upstream, {
      kind: 'bedrock',
      priority: i,
      baseUrl: `http://127.0.0.1:${upstream.port}`,
      config: { region: 'us-east-1', access_key_id: 'A' },
      secrets: { secret_access_key: 's'.repeat(40) },
    }),
  )
  const paid: (bigint | 'released' | undefined)[] = []
  const budgets = {
    reserve: () => ({
      settle: (cost: bigint | undefined) => void paid.push(cost),
      release: () => void paid.push('released'),
    }),
  }
  const started = await startRig({
    credentials,
    key: { budget: BUDGET },
    prices: [{ provider: 'bedrock', model: MODEL, usd_per_million: { input: '1', output: '0' } }],
    settings: { maxAttempts: scripts.length },
    parts: { budgets },
  })
  return { upstreams, paid, ...started }
}

const TWO_PARTS = { input_tokens: 14, cost_usd: '0.000014', cost_state: 'exact' }

test('gateway#83 what the parts before a failure reported is counted and paid', async () => {
  const { call, record, paid } = await rig([titan])
  expect(await call('embeddings', heldUp('bad'))).toMatchObject({ status: 502, headers: { 'x-mem-attempts': '1' } })
  expect(await record()).toMatchObject({ outcome: 'error', ...TWO_PARTS })
  expect(paid).toEqual([14_000n])
})

test('gateway#83 so it is when another provider answers instead', async () => {
  const { call, record, paid } = await rig([titan, json(200, PART)])
  expect(await call('embeddings', heldUp('bad'))).toMatchObject({ status: 200, headers: { 'x-mem-attempts': '2' } })
  const kept = await record()
  expect(kept).toMatchObject({ outcome: 'ok', input_tokens: 56, cost_usd: '0.000056', cost_state: 'exact' })
  expect(classes(kept)).toEqual(['transient', 'ok'])
  expect(paid).toEqual([14_000n, 42_000n])
})

test('gateway#83 so it is when a part answered without its vectors', async () => {
  const { call, record, paid } = await rig([titan])
  expect(await call('embeddings', { model: MODEL, input: ['one', 'two', 'empty'] })).toMatchObject({ status: 502 })
  expect(await record()).toMatchObject({ outcome: 'error', error_code: 'upstream_invalid_response', ...TWO_PARTS })
  expect(paid).toEqual([14_000n])
})

test('gateway#83 so it is when the client goes before all parts have answered', async () => {
  const { call, record, paid, upstreams } = await rig([titan])
  const leaving = new AbortController()
  const answered = call('embeddings', heldUp('silent'), { signal: leaving.signal })
  for (let i = 0; i < 6; i++) await upstreams[0]?.next()
  leaving.abort()
  await expect(answered).rejects.toThrow(/abort/)
  expect(await record()).toMatchObject({ outcome: 'client_closed', ...TWO_PARTS })
  expect(paid).toEqual([14_000n])
})

test('parts that reported nothing cost nothing when another fails', async () => {
  const { call, record, paid } = await rig([titan])
  expect(await call('embeddings', { model: MODEL, input: ['silent', 'bad'] })).toMatchObject({ status: 502 })
  expect(await record()).toMatchObject({ input_tokens: null, cost_usd: null, cost_state: 'no_usage' })
  expect(paid).toEqual(['released'])
})
