import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readMembers } from '../../../src/gateway/relay/body.ts'
import { bodyOf, candidateOf, chat, HI, makeExchange, messages, requestOf } from './support.ts'

const openai = candidateOf('openai')

describe('gateway#47 a relay changes the value of model and the usage option, and no other byte', () => {
  test('odd spacing, unknown fields, order and numbers stay', () => {
    const text =
      '{ "x" : 1.50,\r\n "model":"asked", "messages":[{"role":"user","content":"h\\u00e9"}],"é":1e2 ,"y":{} }'
    expect(makeExchange(requestOf('chat', text), openai).body.toString()).toBe(text.replace('asked', 'upstream-model'))
  })

  test('a name that stays is not written anew', () => {
    const request = requestOf('chat', '{"mod\\u0065l":"upstream-\\u006dodel","messages":[]}')
    expect(makeExchange(request, openai).body.toString()).toBe('{"mod\\u0065l":"upstream-model","messages":[]}')
    const same = requestOf('messages', '{"model":"upstream-model"}')
    expect(makeExchange(same, candidateOf('anthropic')).body).toBe(same.body)
  })

  test.each([
    ['{"model":"a","stream":true}', '{"stream_options":{"include_usage":true},"model":"upstream-model","stream":true}'],
    [
      '{"model":"a","stream":true,"stream_options":{ "x":1}}',
      '{"model":"upstream-model","stream":true,"stream_options":{"include_usage":true, "x":1}}',
    ],
    [
      '{"model":"a","stream":true,"stream_options":{"include_usage" : false}}',
      '{"model":"upstream-model","stream":true,"stream_options":{"include_usage" : true}}',
    ],
    [
      '{"model":"a","stream":true,"stream_options":null}',
      '{"model":"upstream-model","stream":true,"stream_options":{"include_usage":true}}',
    ],
    [
      '{"model":"a","stream":true,"stream_options":{"include_usage":true}}',
      '{"model":"upstream-model","stream":true,"stream_options":{"include_usage":true}}',
    ],
  ])('the usage option of %s', (asked, sent) => {
    expect(makeExchange(requestOf('chat', asked), openai).body.toString()).toBe(sent)
  })

  test('nothing is asked of one that does not know the option', () => {
    const body = '{"model":"a","stream":true}'
    const quiet = candidateOf('openai-compatible', { edits: { streamUsage: false } })
    expect(makeExchange(requestOf('chat', body), quiet).body.toString()).toBe(
      '{"model":"upstream-model","stream":true}',
    )
  })

  test('Claude on Vertex gets its version, and no model, which is in the path', () => {
    const vertex = candidateOf('vertex', { dialect: 'anthropic', config: { anthropic_version: 'vertex-2023-10-16' } })
    const body = '{"model":"a", "max_tokens":5}'
    expect(makeExchange(requestOf('messages', body), vertex).body.toString()).toBe(
      '{"anthropic_version":"vertex-2023-10-16","max_tokens":5}',
    )
  })
})

test('gateway#48 what is judged is what is sent: caps given twice are lowered both', () => {
  const request = requestOf('chat', '{"model":"a","max_tokens":900,"max_tokens":800}', { maxOutputTokens: 50 })
  expect(makeExchange(request, openai).body.toString()).toBe(
    '{"model":"upstream-model","max_tokens":50,"max_tokens":50}',
  )
  for (const text of ['{"model":"a","model":"b"}', '{"model":"a","mod\\u0065l":"b"}']) {
    expect(() => readMembers(Buffer.from(text), new Set(['model']))).toThrow(
      expect.objectContaining({ param: 'model' }),
    )
  }
})

describe('the output cap of a key', () => {
  const capped = (body: object, kind: Parameters<typeof candidateOf>[0] = 'openai', row?: object) =>
    bodyOf(chat(candidateOf(kind, row ? { row } : {}), body, { maxOutputTokens: 50 }))

  test('a larger or absent one becomes it, a smaller one stays', () => {
    expect(capped({ max_tokens: 900 })).toMatchObject({ max_tokens: 50 })
    expect(capped({ max_tokens: 900, max_completion_tokens: 20 })).toMatchObject({
      max_tokens: 50,
      max_completion_tokens: 20,
    })
    expect(capped({ max_tokens: 20 })).toEqual({ model: 'upstream-model', messages: HI, max_tokens: 20 })
    expect(capped({ max_tokens: null })).toMatchObject({ max_tokens: 50 })
    expect(capped({})).toMatchObject({ max_completion_tokens: 50 })
    expect(capped({}, 'openai', { max_tokens_field: 'max_tokens' })).toMatchObject({ max_tokens: 50 })
    expect(capped({}, 'ollama')).toMatchObject({ max_tokens: 50 })
    expect(capped({ max_completion_tokens: 900 }, 'mistral')).toEqual({
      model: 'upstream-model',
      messages: HI,
      max_tokens: 50,
    })
    expect(capped({}, 'mistral')).toMatchObject({ max_tokens: 50 })
  })

  test('each surface has its field; counting has none', () => {
    const anthropic = candidateOf('anthropic')
    expect(bodyOf(messages(anthropic, { max_tokens: 900 }, { maxOutputTokens: 50 }))).toMatchObject({ max_tokens: 50 })
    const counted = requestOf('messages', { model: 'a', messages: HI }, { maxOutputTokens: 50, countOnly: true })
    expect(bodyOf(makeExchange(counted, anthropic))).toEqual({ model: 'upstream-model', messages: HI })
    const response = requestOf('responses', { model: 'a', input: 'hi' }, { maxOutputTokens: 50 })
    expect(bodyOf(makeExchange(response, openai))).toMatchObject({ max_output_tokens: 50 })
    const embeddings = requestOf('embeddings', { model: 'a', input: 'hi' }, { maxOutputTokens: 50 })
    expect(bodyOf(makeExchange(embeddings, openai))).toEqual({ model: 'upstream-model', input: 'hi' })
  })
})

describe('gateway#51 edits of a kind', () => {
  test('Mistral: fields renamed and left out, named in the order of the edits', () => {
    const text =
      '{"user":"u","model":"a", "seed":7,"messages":[ {"role":"user","content":"hi"} ] ,"store":true,"max_completion_tokens": 9,"logit_bias":null}'
    const exchange = makeExchange(requestOf('chat', text), candidateOf('mistral'))
    expect(exchange.body.toString()).toBe(
      '{"model":"upstream-model", "random_seed":7,"messages":[ {"role":"user","content":"hi"} ],"max_tokens":9}',
    )
    expect(exchange.dropped).toEqual(['user', 'store'])
  })

  test('Groq: names of messages, and log probabilities', () => {
    const text =
      '{"model":"a","top_logprobs":2,"messages":[{"name":"ann", "role":"user","content":"\\"name\\":1"},{"role":"user","content":"x" , "name":"bob"}],"logprobs":true}'
    const exchange = makeExchange(requestOf('chat', text), candidateOf('groq'))
    expect(exchange.body.toString()).toBe(
      '{"model":"upstream-model","messages":[{"role":"user","content":"\\"name\\":1"},{"role":"user","content":"x"}]}',
    )
    expect(exchange.dropped).toEqual(['logprobs', 'top_logprobs', 'messages[].name'])
  })

  test('fields that a credential leaves out; strict refuses instead', () => {
    const candidate = candidateOf('openai-compatible', { edits: { drop: ['parallel_tool_calls', 'temperature'] } })
    const body = { temperature: 1, parallel_tool_calls: false }
    const exchange = chat(candidate, body)
    expect(bodyOf(exchange)).toEqual({ model: 'upstream-model', messages: HI })
    expect(exchange.dropped).toEqual(['parallel_tool_calls', 'temperature'])
    expect(() => chat(candidate, body, { strict: true })).toThrow(
      expect.objectContaining({ code: 'unsupported_parameter', status: 400, param: 'parallel_tool_calls' }),
    )
    expect(chat(candidate, {}, { strict: true }).dropped).toEqual([])
  })

  test('thoughts go to Mistral as chunks of the content', () => {
    const sent = (message: object) =>
      bodyOf(chat(candidateOf('mistral'), { messages: [{ role: 'assistant', ...message }] }))['messages']
    const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'hm "é"' }] }
    const text = { type: 'text', text: 'so' }
    expect(sent({ reasoning_content: 'hm "é"', content: 'so' })).toEqual([
      { role: 'assistant', content: [thinking, text] },
    ])
    expect(sent({ content: [text], reasoning_content: 'hm "é"' })).toEqual([
      { role: 'assistant', content: [thinking, text] },
    ])
    expect(sent({ content: null, reasoning_content: 'hm "é"' })).toEqual([{ role: 'assistant', content: [thinking] }])
    expect(sent({ reasoning_content: 'hm "é"' })).toEqual([{ role: 'assistant', content: [thinking] }])
    expect(sent({ content: 'so', reasoning_content: null })).toEqual([{ role: 'assistant', content: 'so' }])
  })

  test('whatever is left out and renamed, the rest is what it was', () => {
    const name = fc.constantFrom(
      'user',
      'store',
      'seed',
      'max_completion_tokens',
      'logprobs',
      'a',
      'b',
      'é',
      'random_seed',
    )
    fc.assert(
      fc.property(fc.dictionary(name, fc.jsonValue()), fc.constantFrom(0, 1), fc.nat(), (fields, indent, at) => {
        const entries: [string, unknown][] = Object.entries(fields)
        entries.splice(at % (entries.length + 1), 0, ['model', 'm'])
        const sent = bodyOf(
          makeExchange(
            requestOf('chat', JSON.stringify(Object.fromEntries(entries), null, indent)),
            candidateOf('mistral'),
          ),
        )
        const expected = entries.flatMap(([key, value]): [string, unknown][] => {
          if (['user', 'store', 'logprobs'].includes(key) || (key === 'seed' && 'random_seed' in fields)) return []
          const renamed = { seed: 'random_seed', max_completion_tokens: 'max_tokens', model: 'model' }[key] ?? key
          return [[renamed, key === 'model' ? 'upstream-model' : value]]
        })
        expect(sent).toEqual(JSON.parse(JSON.stringify(Object.fromEntries(expected))))
      }),
    )
  })
})

test('gateway#66 ids that Mistral does not take are rewritten alike in call and result', () => {
  const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })
  const history = [
    { role: 'assistant', content: '', tool_calls: [call('call_long_one'), call('abcdEF123')] },
    { role: 'tool', tool_call_id: 'call_long_one', content: 'x' },
    { role: 'tool', tool_call_id: 'abcdEF123', content: 'y' },
  ]
  const sent = JSON.stringify(bodyOf(chat(candidateOf('mistral'), { messages: history })))
  const ids = [...sent.matchAll(/"(?:tool_call_)?id":"([^"]+)"/g)].map(([, id]) => id)
  expect(ids[0]).toMatch(/^[A-Za-z0-9]{9}$/)
  expect(ids).toEqual([ids[0], 'abcdEF123', ids[0], 'abcdEF123'])
  const use = [
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'x' }] },
  ]
  const translated = JSON.stringify(bodyOf(messages(candidateOf('mistral'), { messages: use })))
  const [first, second] = [...translated.matchAll(/"(?:tool_call_)?id":"([A-Za-z0-9]{9})"/g)].map(([, id]) => id)
  expect(first).toBe(second)
  expect(first).toBeDefined()
})

test('gateway#52 an anthropic relay keeps betas, cache marks, thinking and tools that the provider runs', () => {
  const text = JSON.stringify({
    model: 'a',
    max_tokens: 5,
    system: [{ type: 'text', text: 's', cache_control: { type: 'ephemeral', ttl: '1h' } }],
    thinking: { type: 'enabled', budget_tokens: 2048 },
    tools: [{ type: 'web_search_20250305', name: 'web_search' }],
    context_management: { edits: [] },
    messages: [{ role: 'assistant', content: [{ type: 'server_tool_use', id: 'x', name: 'web_search', input: {} }] }],
  })
  const exchange = makeExchange(requestOf('messages', text), candidateOf('anthropic'))
  expect(exchange.body.toString()).toBe(text.replace('"a"', '"upstream-model"'))
  expect(exchange.isRelay).toBe(true)
  const counting = makeExchange(requestOf('messages', text, { countOnly: true }), candidateOf('anthropic'))
  expect(counting.answer(Buffer.from('{"input_tokens":12}')).body.toString()).toBe('{"input_tokens":12}')
})

test('gateway#53 responses are relayed only', () => {
  const request = requestOf('responses', { model: 'a', input: 'hi', background: false })
  expect(bodyOf(makeExchange(request, openai))).toEqual({ model: 'upstream-model', input: 'hi', background: false })
  expect(() => makeExchange(request, candidateOf('anthropic'))).toThrow(expect.objectContaining({ status: 400 }))
})
