import { expect, test } from 'vitest'
import { GatewayError } from '../../../src/gateway/errors.ts'
import { alias, credential, key, next, routing, tries } from './support.ts'

/** The code and message of what it throws. */
function refusal(work: () => unknown): { code: string; message: string; status: number } {
  try {
    work()
  } catch (error) {
    if (error instanceof GatewayError) return { code: error.code, message: error.message, status: error.status }
    throw error
  }
  throw new Error('nothing was thrown')
}

const open = { kind: 'openai-compatible', config: { responses: true } } as const

test('gateway#23 default model first, then what is named, then the table; open kinds where nobody else serves', () => {
  const { select } = routing({
    credentials: [
      credential(1, open),
      credential(2, { allowedModels: ['claude-sonnet-4-5'], weight: 5000 }),
      credential(3, { kind: 'anthropic' }),
      credential(4, { kind: 'anthropic', defaultModel: 'claude-sonnet-4-5' }),
      credential(5, { modelMapping: new Map([['claude-sonnet-4-5', 'upstream-name']]) }),
      credential(6, { kind: 'azure-openai', config: { deployment: 'claude-sonnet-4-5' } }),
    ],
  })
  const found = select('claude-sonnet-4-5')
    .available()
    .map(({ upstream, ring }) => [upstream.credential.id, ring])
  expect(Object.fromEntries(found)).toEqual({ 2: 2, 3: 3, 4: 1, 5: 2, 6: 2 })
  const tried = tries(select('claude-sonnet-4-5')).map((each) => each.split('/')[0])
  expect(tried[0]).toBe('4')
  expect(new Set(tried.slice(1, 4))).toEqual(new Set(['2', '5', '6']))
  expect(tried.slice(4)).toEqual(['3'])
  expect(new Set(tries(select('nobody-knows-it')))).toEqual(new Set(['1/nobody-knows-it', '6/nobody-knows-it']))
})

test('gateway#30 an open kind never replaces a failed pick', () => {
  const { select } = routing({ credentials: [credential(1), credential(2, open)] })
  expect(tries(select('gpt-4o'), { class: 'connect' })).toEqual(['1/gpt-4o'])
})

test('gateway#26 mapping, kind/model, served names that hold a slash, Azure deployments', () => {
  const { select } = routing({
    credentials: [
      credential(1, { modelMapping: new Map([['gpt-4o', 'gpt-4o-2024-11-20']]) }),
      credential(2, { kind: 'groq' }),
      credential(3, { kind: 'azure-openai', defaultModel: 'our-chat', config: { deployment: 'prod' } }),
      credential(4, { kind: 'anthropic' }),
    ],
  })
  expect(tries(select('gpt-4o'))).toEqual(['1/gpt-4o-2024-11-20'])
  expect(tries(select('openai/gpt-4o'))).toEqual(['1/gpt-4o-2024-11-20'])
  expect(tries(select('openai/gpt-oss-120b'))).toEqual(['2/openai/gpt-oss-120b'])
  expect(tries(select('anthropic/a-name-of-tomorrow'))).toEqual(['4/a-name-of-tomorrow'])
  expect(tries(select('groq/openai/gpt-oss-120b'))).toEqual(['2/openai/gpt-oss-120b'])
  expect(tries(select('our-chat'))).toEqual(['3/prod'])
  expect(tries(select('prod'))).toEqual(['3/prod'])
  expect(tries(select('other-deployment'))).toEqual(['3/other-deployment'])
  expect(refusal(() => select('mistral/mistral-small-latest')).code).toBe('model_not_found')
})

test('gateway#26 allowed models, a star at the end included, count on the name as the client says it', () => {
  const { select } = routing({
    credentials: [
      credential(1, { allowedModels: ['fast-*'], modelMapping: new Map([['fast-1', 'gpt-4o-mini']]) }),
      credential(2, { ...open, allowedModels: ['other'] }),
    ],
  })
  expect(tries(select('fast-1'))).toEqual(['1/gpt-4o-mini'])
  expect(tries(select('fast-2'))).toEqual(['1/fast-2'])
  expect(refusal(() => select('gpt-4o-mini')).status).toBe(404)
})

test('gateway#27 an alias by weight, by order, with members that say nothing, through mappings', () => {
  const credentials = [
    credential(1, { defaultModel: 'gpt-4o', priority: 3 }),
    credential(2, { modelMapping: new Map([['m', 'mapped']]), priority: 1 }),
    credential(3, { enabled: false }),
  ]
  const members = [{ credential_id: 1 }, { credential_id: 2, model: 'm' }, { credential_id: 3, model: 'm' }]
  const aliases = [
    alias(1, 'ordered', { strategy: 'ordered', members }),
    alias(2, 'by-priority', { members }),
    alias(3, 'by-weight', {
      members: members.map((each, i) => ({ ...each, priority: 0, weight: i === 0 ? 0.25 : 0.75 })),
    }),
  ]
  const { select } = routing({ credentials, aliases })
  for (let i = 0; i < 3; i++) expect(tries(select('ordered'))).toEqual(['1/gpt-4o', '2/mapped'])
  expect(tries(select('by-priority'))).toEqual(['2/mapped', '1/gpt-4o'])
  const firsts = Array.from({ length: 40 }, () => next(select('by-weight'))?.model)
  expect(firsts.filter((model) => model === 'gpt-4o')).toHaveLength(10)
  expect(select('ordered').alias?.id).toBe(1)
})

test('gateway#27 a private alias hides the shared one for its user; a disabled one is not there', () => {
  const credentials = [credential(1), credential(2, { userId: 7 })]
  const aliases = [
    alias(1, 'gpt-4o', { members: [{ credential_id: 1, model: 'shared' }] }),
    alias(2, 'gpt-4o', { scope: 'user', user_id: 7, members: [{ credential_id: 2, model: 'own' }] }),
    alias(3, 'gpt-4o', { scope: 'user', user_id: 8, enabled: false, members: [{ credential_id: 1, model: 'off' }] }),
  ]
  const { select } = routing({ credentials, aliases })
  expect(tries(select('gpt-4o', { userId: 7 }))).toEqual(['2/own'])
  expect(tries(select('gpt-4o', { userId: 8 }))).toEqual(['1/shared'])
  expect(tries(select('gpt-4o'))).toEqual(['1/shared'])
})

test('gateway#27 fallback models follow in turn, aliases among them, and a cycle ends', () => {
  const aliases = [
    alias(1, 'a', { members: [{ credential_id: 1, model: 'one' }], fallback_models: ['b', 'gpt-4o'] }),
    alias(2, 'b', { members: [{ credential_id: 2, model: 'two' }], fallback_models: ['a', 'claude-sonnet-4-5'] }),
  ]
  const { select } = routing({
    credentials: [credential(1), credential(2, { kind: 'groq' }), credential(3, { kind: 'anthropic' })],
    aliases,
  })
  expect(tries(select('a'))).toEqual(['1/one', '2/two', '3/claude-sonnet-4-5', '1/gpt-4o'])
  expect(
    select('a')
      .available()
      .map(({ name }) => name),
  ).toEqual(['a', 'b', 'claude-sonnet-4-5', 'gpt-4o'])
})

test('gateway#27 the alias says after which failures another candidate may answer', () => {
  const members = [{ credential_id: 1, model: 'm' }]
  const { select } = routing({
    credentials: [credential(1)],
    aliases: [alias(1, 'wide', { members, fallback_on: ['context', 'rate'] })],
  })
  const classes = ['connect', 'transient', 'rate', 'auth', 'missing', 'context', 'filtered', 'client'] as const
  const on = (name: string) => {
    const selection = select(name)
    const candidate = next(selection)
    return candidate ? classes.filter((each) => selection.mayFallBack(candidate, each)) : []
  }
  expect(on('wide')).toEqual(['rate', 'context'])
  expect(on('gpt-4o')).toEqual(['connect', 'transient', 'rate', 'auth', 'missing'])
})

test('gateway#28 a pin by id or name goes to that credential alone, also where nobody names the model', () => {
  const { select } = routing({
    credentials: [
      credential(1, { defaultModel: 'gpt-4o' }),
      credential(2, { name: 'Second' }),
      credential(3, { userId: 7, name: 'second' }),
      credential(4, { enabled: false }),
      credential(5, { kind: 'anthropic', allowedModels: ['x'] }),
    ],
    aliases: [alias(1, 'both', { members: [1, 2].map((id) => ({ credential_id: id, model: `m${id}` })) })],
  })
  expect(tries(select('gpt-4o', { pin: '2' }))).toEqual(['2/gpt-4o'])
  expect(tries(select('gpt-4o', { pin: 'SECOND' }))).toEqual(['2/gpt-4o'])
  expect(tries(select('gpt-4o', { pin: 'second', userId: 7 }))).toEqual(['3/gpt-4o'])
  expect(tries(select('of-tomorrow', { pin: '1' }))).toEqual(['1/of-tomorrow'])
  expect(tries(select('both', { pin: '2' }))).toEqual(['2/m2'])
  const foreign = [{ pin: '3' }, { pin: '4' }, { pin: '99' }, { pin: '5' }]
  for (const options of foreign) expect(refusal(() => select('gpt-4o', options)).code).toBe('credential_not_allowed')
  expect(refusal(() => select('both', { pin: '3', userId: 7 })).status).toBe(403)
  const limited = key(1, { allowedCredentials: [1] })
  expect(refusal(() => select('gpt-4o', { pin: '2', key: limited })).code).toBe('credential_not_allowed')
})

test('gateway#29 an unknown model: 404 with at most five near names that the caller may use', () => {
  const { select } = routing({
    credentials: [credential(1), credential(2, { kind: 'anthropic', userId: 7 })],
    aliases: [alias(1, 'gpt-4o-cheap', { members: [{ credential_id: 1, model: 'gpt-4o-mini' }] })],
  })
  const { code, message, status } = refusal(() => select('gtp-4o'))
  expect([code, status]).toEqual(['model_not_found', 404])
  expect(message).toContain('"gpt-4o"')
  expect(message.match(/"/g)?.length).toBeLessThanOrEqual(12)
  // Near names are of use only where they can be called.
  expect(refusal(() => select('claude-opus-4-6', { surface: 'embeddings', userId: 7 })).message).not.toContain('near')
  expect(refusal(() => select('claude-sonet-4-5')).message).not.toContain('claude-sonnet')
  expect(refusal(() => select('claude-sonet-4-5', { key: key(1, { userId: 7 }) })).message).not.toContain(
    'claude-sonnet',
  )
  expect(refusal(() => select('clade-sonnet-4-5', { userId: 7 })).message).toContain('"claude-sonnet-4-5"')
  expect(refusal(() => select('x'.repeat(5000))).message.length).toBeLessThan(400)
})

test('gateway#29 an alias whose members may serve nothing says so', () => {
  const { select } = routing({
    credentials: [credential(1, { allowedModels: ['gpt-*'] })],
    aliases: [alias(1, 'cheap', { members: [{ credential_id: 1, model: 'qwen3-coder' }] })],
  })
  expect(refusal(() => select('cheap'))).toMatchObject({
    code: 'model_not_found',
    message: expect.stringContaining('No member of the alias "cheap" serves chat'),
  })
})

test('gateway#8 private credentials serve their user alone, and nobody where they are switched off', () => {
  const world = { credentials: [credential(1, { userId: 7 })] }
  const { select, update } = routing(world)
  expect(tries(select('gpt-4o', { userId: 7 }))).toEqual(['1/gpt-4o'])
  expect(tries(select('gpt-4o', { userId: 7, key: key(1, { userId: 7 }) }))).toEqual(['1/gpt-4o'])
  expect(refusal(() => select('gpt-4o', { userId: 8 })).status).toBe(404)
  expect(refusal(() => select('gpt-4o', { key: key(2) })).status).toBe(404)
  update({ ...world, settings: { private_credentials: false } })
  expect(refusal(() => select('gpt-4o', { userId: 7 })).status).toBe(404)
})

test('gateway#40 fallback names that the key may not use or that are blocked are skipped', () => {
  const { select } = routing({
    credentials: [credential(1), credential(2, { kind: 'anthropic' }), credential(3, { kind: 'groq' })],
    aliases: [
      alias(1, 'a', {
        members: [{ credential_id: 1, model: 'one' }],
        fallback_models: ['claude-sonnet-4-5', 'llama-3.1-8b-instant', 'gpt-4o'],
      }),
    ],
    settings: { blocked_models: ['llama-3.1*'] },
  })
  expect(tries(select('a'))).toEqual(['1/one', '2/claude-sonnet-4-5', '1/gpt-4o'])
  expect(tries(select('a', { key: key(1, { allowedModels: ['a', 'gpt-*'] }) }))).toEqual(['1/one', '1/gpt-4o'])
  expect(tries(select('a', { key: key(2, { allowedCredentials: [2, 3] }) }))).toEqual(['2/claude-sonnet-4-5'])
  expect(refusal(() => select('gpt-4o', { key: key(1, { allowedModels: ['a'] }) })).code).toBe('model_not_allowed')
})

test('gateway#96 a blocked model is refused by its asked and its upstream name, through mapping and alias', () => {
  const { select, caller, router } = routing({
    credentials: [
      credential(1, { modelMapping: new Map([['nice', 'gpt-4o-mini']]) }),
      credential(2, { kind: 'anthropic', defaultModel: 'half' }),
      credential(3, { defaultModel: 'half', modelMapping: new Map([['half', 'gpt-4o-mini']]) }),
    ],
    aliases: [alias(1, 'through', { members: [{ credential_id: 1, model: 'gpt-4o-mini' }] })],
    settings: { blocked_models: ['gpt-4o-*'] },
  })
  for (const name of ['gpt-4o-mini', 'gpt-4o-anything', 'nice', 'through']) {
    expect(refusal(() => select(name))).toMatchObject({ code: 'model_blocked', status: 403 })
  }
  expect(refusal(() => select('openai/gpt-4o-mini')).code).toBe('model_blocked')
  expect(refusal(() => select('nice', { pin: '1' })).code).toBe('model_blocked')
  expect(tries(select('half'))).toEqual(['2/half'])
  expect(router.explain(caller(), 'half', 'chat').candidates.at(-1)).toMatchObject({
    credential_id: 3,
    skipped: 'model_blocked',
    share: 0,
  })
})

test('gateway#96 a blocked name stays blocked behind its kind and as a member of an alias, whatever it is upstream', () => {
  const { select, router, caller } = routing({
    credentials: [credential(1, { modelMapping: new Map([['dear', 'big-1']]) })],
    aliases: [
      alias(1, 'through', { members: [{ credential_id: 1, model: 'dear' }] }),
      alias(2, 'own', {
        scope: 'user',
        user_id: 7,
        members: [
          { credential_id: 1, model: 'dear' },
          { credential_id: 1, model: 'big-1' },
        ],
      }),
    ],
    settings: { blocked_models: ['dear'] },
  })
  for (const name of ['dear', 'openai/dear', 'through']) {
    expect(refusal(() => select(name))).toMatchObject({ code: 'model_blocked', status: 403 })
  }
  expect(refusal(() => select('openai/dear', { pin: '1' })).code).toBe('model_blocked')
  expect(tries(select('own', { userId: 7 }))).toEqual(['1/big-1'])
  expect(router.models(caller()).map(({ id }) => id)).not.toContain('through')
})

test('gateway#53 responses and embeddings go to kinds that have them', () => {
  const { select } = routing({
    credentials: [credential(1), credential(2, { kind: 'anthropic', defaultModel: 'gpt-4o' })],
  })
  expect(tries(select('gpt-4o', { surface: 'responses' }))).toEqual(['1/gpt-4o'])
  expect(tries(select('gpt-4o', { surface: 'messages' }))).toEqual(['2/gpt-4o', '1/gpt-4o'])
  expect(tries(select('text-embedding-3-small', { surface: 'embeddings' }))).toEqual(['1/text-embedding-3-small'])
})

test('gateway#30 a credential whose kind has not the surface keeps nobody from serving it', () => {
  const { select } = routing({
    credentials: [
      credential(1, { kind: 'anthropic', defaultModel: 'embedder' }),
      credential(2, { kind: 'groq', modelMapping: new Map([['openai/embedder', 'other']]) }),
      credential(3, { kind: 'openai' }),
      credential(4, open),
    ],
  })
  expect(tries(select('embedder'))).toEqual(['1/embedder'])
  expect(tries(select('embedder', { surface: 'embeddings' }))).toEqual(['4/embedder'])
  expect(tries(select('embedder', { surface: 'responses' }))).toEqual(['4/embedder'])
  expect(tries(select('openai/embedder', { surface: 'embeddings' }))).toEqual(['3/embedder'])
})

test('gateway#105 the list of models holds exactly the names that may be used', () => {
  const { router, caller, select } = routing({
    credentials: [
      credential(1, {
        defaultModel: 'own-default',
        modelMapping: new Map([
          ['mapped', 'gpt-4o'],
          ['blocked-behind', 'bad-1'],
        ]),
        allowedModels: ['own-default', 'mapped', 'blocked-behind', 'exact', 'gpt-4o-mini', 'gpt-4.1*'],
      }),
      credential(2, { kind: 'anthropic', userId: 7 }),
      credential(3, { kind: 'groq', enabled: false }),
    ],
    aliases: [
      alias(1, 'team/alias', { members: [{ credential_id: 1, model: 'exact' }] }),
      alias(2, 'empty', { members: [{ credential_id: 3, model: 'exact' }] }),
      alias(3, 'off', { enabled: false, members: [{ credential_id: 1, model: 'exact' }] }),
    ],
    settings: { blocked_models: ['bad-*', 'gpt-4.1-nano*'] },
  })
  const ids = (fields = {}) => router.models(caller(fields)).map(({ id }) => id)
  const shared = ids()
  expect(shared.filter((id) => !id.startsWith('gpt-4.1'))).toEqual([
    'exact',
    'gpt-4o-mini',
    'mapped',
    'own-default',
    'team/alias',
  ])
  expect(shared).toContain('gpt-4.1')
  expect(shared.some((id) => id.startsWith('gpt-4.1-nano'))).toBe(false)
  for (const id of shared) expect(tries(select(id)).length).toBeGreaterThan(0)
  expect(ids({ userId: 7 })).toContain('claude-sonnet-4-5')
  expect(ids({ key: key(1, { allowedModels: ['mapped', 'gpt-4.1'] }) })).toEqual(['gpt-4.1', 'mapped'])
  const [entry] = router.models(caller()).filter(({ id }) => id === 'team/alias')
  expect(entry).toEqual({ id: 'team/alias', owned_by: 'alias', created: Date.parse('2026-01-02T03:04:05Z') / 1000 })
})

test('the explainer tells order, shares and what rests, and moves no sequence', () => {
  const { router, caller, select } = routing({
    credentials: [
      credential(1, { weight: 500 }),
      credential(2, { weight: 300 }),
      credential(3, { weight: 200 }),
      credential(4, { priority: 1, isBroken: true }),
    ],
  })
  const selection = select('gpt-4o', { pin: '2' })
  const candidate = next(selection)
  if (candidate) selection.settle(candidate, { class: 'rate', retryAfterMs: 1000 }, 0)
  const { name, candidates } = router.explain(caller(), 'gpt-4o', 'chat')
  expect(name).toBe('gpt-4o')
  expect(candidates.map(({ share }) => Math.round(share * 1000))).toEqual([714, 0, 286, 0])
  expect(candidates.map(({ state, skipped }) => [state, skipped])).toEqual([
    ['healthy', undefined],
    ['cooling', 'cooling'],
    ['healthy', undefined],
    ['rejected', 'rejected'],
  ])
  expect(candidates[3]).toMatchObject({ credential_id: 4, model: 'gpt-4o', ring: 3, priority: 1 })
})

test('invented names do not fill the memory: what is remembered of routes has an end', () => {
  const made: number[] = []
  const { select } = routing({ credentials: Array.from({ length: 100 }, (_, i) => credential(i + 1, open)) })
  const first = select('name 0').available()[0]
  for (let i = 0; i < 600; i++) if (select(`name ${i}`).available()[0] === first) made.push(i)
  expect(made).toEqual([0])
  expect(select('name 0').available()[0]).not.toBe(first)
})
