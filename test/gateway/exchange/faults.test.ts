import { describe, expect, test } from 'vitest'
import type { Kind } from '../../../src/gateway/model.ts'
import { candidateOf, chat, faultOf, messages, NOW, sse } from './support.ts'

const fault = (kind: Kind, status: number, body: object | string, headers: Record<string, string> = {}) =>
  chat(candidateOf(kind)).fault(status, headers, Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)))

const error = (fields: object): object => ({ error: { message: 'm', ...fields } })

describe('classes of refusals, by status, code and phrase', () => {
  test.each<[string, Kind, number, object | string, Record<string, string>, string]>([
    ['gateway#31 503', 'openai', 503, '<html>busy</html>', {}, 'transient'],
    ['408', 'openai', 408, '', {}, 'transient'],
    ['409', 'anthropic', 409, error({}), {}, 'transient'],
    [
      'a model of Bedrock that failed',
      'bedrock',
      424,
      { message: 'm' },
      { 'x-amzn-errortype': 'ModelErrorException' },
      'transient',
    ],
    ['gateway#32 429', 'openai', 429, error({ code: 'rate_limit_exceeded' }), {}, 'rate'],
    ['529', 'anthropic', 529, { type: 'error', error: { type: 'overloaded_error', message: 'm' } }, {}, 'rate'],
    ['throttling', 'bedrock', 400, { message: 'm' }, { 'x-amzn-errortype': 'ThrottlingException:http://x' }, 'rate'],
    ['throttling in the body', 'bedrock', 400, { __type: 'com.amazon#ThrottlingException', message: 'm' }, {}, 'rate'],
    ['resource exhausted', 'gemini', 400, error({ status: 'RESOURCE_EXHAUSTED' }), {}, 'rate'],
    ['gateway#33 401', 'openai', 401, error({ code: 'invalid_api_key' }), {}, 'auth'],
    ['402', 'openai-compatible', 402, error({}), {}, 'auth'],
    ['403', 'vertex', 403, [error({ status: 'PERMISSION_DENIED' })], {}, 'auth'],
    ['no quota left', 'openai', 429, error({ code: 'insufficient_quota', type: 'insufficient_quota' }), {}, 'auth'],
    [
      'a bad key of Gemini',
      'gemini',
      400,
      error({ status: 'INVALID_ARGUMENT', details: [{ '@type': 'x', reason: 'API_KEY_INVALID' }] }),
      {},
      'auth',
    ],
    ['access denied', 'bedrock', 400, { Message: 'm' }, { 'x-amzn-errortype': 'AccessDeniedException' }, 'auth'],
    ['an old token', 'bedrock', 400, { message: 'm' }, { 'x-amzn-errortype': 'ExpiredTokenException' }, 'auth'],
    ['gateway#34 404', 'openai', 404, error({ code: 'model_not_found' }), {}, 'missing'],
    ['no deployment', 'azure-openai', 404, error({ code: 'DeploymentNotFound' }), {}, 'missing'],
    ['gateway#20 a redirect', 'openai-compatible', 302, '', { location: 'http://169.254.169.254/' }, 'missing'],
    ['gateway#35 a code', 'openai', 400, error({ code: 'context_length_exceeded' }), {}, 'context'],
    [
      'a phrase of Anthropic',
      'anthropic',
      400,
      error({ message: 'prompt is too long: 210000 tokens > 200000 maximum' }),
      {},
      'context',
    ],
    [
      'a phrase of Gemini',
      'gemini',
      400,
      error({ message: 'The input token count (9) exceeds the maximum number of tokens allowed (5).' }),
      {},
      'context',
    ],
    [
      'a phrase of Bedrock',
      'bedrock',
      400,
      { message: 'Input is too long for requested model.' },
      { 'x-amzn-errortype': 'ValidationException' },
      'context',
    ],
    ['a phrase of others', 'ollama', 400, { error: 'the input exceeds the context length of 4096' }, {}, 'context'],
    [
      'gateway#73 the filter of Azure',
      'azure-openai',
      400,
      error({ code: 'content_filter', innererror: { code: 'ResponsibleAIPolicyViolation' } }),
      {},
      'filtered',
    ],
    ['gateway#34 400', 'mistral', 400, { object: 'error', message: 'm', type: 'invalid_request_error' }, {}, 'client'],
    ['a code that every object has', 'openai-compatible', 400, error({ code: 'constructor' }), {}, 'client'],
    ['422', 'mistral', 422, { detail: [{ msg: 'bad' }] }, {}, 'client'],
    ['413', 'anthropic', 413, { type: 'error', error: { type: 'request_too_large', message: 'm' } }, {}, 'client'],
  ])('%s', (_, kind, status, body, headers, expected) => {
    expect(fault(kind, status, body, headers)).toMatchObject({ class: expected, status })
  })
})

describe('gateway#34 how the client is told', () => {
  const refused = { message: 'bad tool', type: 'invalid_request_error', param: 'tools[0]', code: 'invalid_tool' }

  test('from an equal dialect, all of it', () => {
    expect(fault('openai', 400, { error: refused }).error.toOpenAi()).toEqual({ error: refused })
    expect(fault('openai', 422, { error: { ...refused, code: null } }).error).toMatchObject({ status: 422 })
    const anthropic = { type: 'error', error: { type: 'invalid_request_error', message: 'max_tokens: wrong' } }
    const told = messages(candidateOf('anthropic')).fault(400, {}, Buffer.from(JSON.stringify(anthropic)))
    expect(told.error.toAnthropic('r')).toEqual({
      ...anthropic,
      error: { ...anthropic.error, code: null },
      request_id: 'r',
    })
  })

  test('the details that clients of Anthropic act upon, without secrets in them', () => {
    const details = { error_code: 'thread_not_found', unsupported: ['sk-ant-abcdefghijklmnopqrst'] }
    const lost = { type: 'error', error: { type: 'not_found_error', message: 'm', details } }
    const told = messages(candidateOf('anthropic')).fault(404, {}, Buffer.from(JSON.stringify(lost)))
    expect(told.error.toAnthropic('r')).toMatchObject({
      error: { type: 'not_found_error', message: 'm', details: { error_code: 'thread_not_found' } },
      request_id: 'r',
    })
    expect(JSON.stringify(told.error.toAnthropic('r'))).not.toContain('abcdefghijklmnopqrst')
    const translated = messages(candidateOf('gemini')).fault(404, {}, Buffer.from(JSON.stringify(lost)))
    expect(translated.error.toAnthropic('r').error).not.toHaveProperty('details')
  })

  test('of a proxy on the way, message and status', () => {
    const { error: told } = fault('openai', 413, '<html>413 Request Entity Too Large</html>')
    expect([told.status, told.toOpenAi().error]).toMatchObject([
      413,
      { type: 'invalid_request_error', code: 'request_too_large' },
    ])
    expect(fault('openai', 422, { detail: 'no' }).error.toOpenAi().error).toMatchObject({
      message: 'no',
      code: 'invalid_value',
    })
  })

  test('from another, message and status', () => {
    const { error: told } = fault('anthropic', 413, {
      type: 'error',
      error: { type: 'request_too_large', message: 'm' },
    })
    expect(told.status).toBe(413)
    expect(told.toOpenAi()).toEqual({
      error: { message: 'm', type: 'invalid_request_error', param: null, code: 'request_too_large' },
    })
    expect(fault('gemini', 400, error({ status: 'INVALID_ARGUMENT' })).error.toOpenAi().error).toMatchObject({
      code: 'invalid_value',
      message: 'm',
    })
  })

  test("401 and 403 are never the client's; their text is for whoever keeps the credential", () => {
    for (const status of [401, 403]) {
      const told = fault('openai', status, error({ message: 'Incorrect API key' }))
      expect(told.error).toMatchObject({ status: 502, code: 'upstream_credentials_rejected' })
      expect(told.error.message).not.toContain('Incorrect')
      expect(told.message).toBe('Incorrect API key')
    }
  })

  test("gateway#100 a key in the provider's message is taken out; long messages are cut", () => {
    const secrets = { api_key: 'very-own-secret-0001' }
    const echoed = error({
      message: `key very-own-secret-0001 and sk-proj-abcdefghijklmnopqrst is wrong ${'x'.repeat(9000)}`,
    })
    const told = chat(candidateOf('openai', { secrets })).fault(400, {}, Buffer.from(JSON.stringify(echoed)))
    for (const text of [told.message, told.error.message]) {
      expect(text).not.toContain('very-own-secret-0001')
      expect(text).not.toContain('abcdefghijklmnopqrst')
      expect(text.length).toBeLessThanOrEqual(4096)
    }
    const elsewhere = error({
      message: 'no',
      type: 'of very-own-secret-0001',
      param: 'very-own-secret-0001',
      code: 'sk-proj-abcdefghijklmnopqrst',
    })
    const named = chat(candidateOf('openai', { secrets })).fault(400, {}, Buffer.from(JSON.stringify(elsewhere)))
    expect(JSON.stringify(named.error.toOpenAi())).not.toMatch(/very-own|abcdefghij/)
    const streamed = chat(candidateOf('openai', { secrets }), { stream: true }).stream()
    expect(faultOf(() => streamed.read(Buffer.from(sse(echoed)))).message).not.toContain('very-own-secret-0001')
  })
})

describe('gateway#32 how long a provider asks to be left alone', () => {
  test.each<[Record<string, string>, number | undefined]>([
    [{ 'retry-after-ms': '1500', 'retry-after': '9' }, 1500],
    [{ 'retry-after': '7' }, 7000],
    [{ 'retry-after': '0.5' }, 500],
    [{ 'retry-after': new Date(NOW + 30_000).toUTCString() }, 30_000],
    [{ 'retry-after': new Date(NOW - 30_000).toUTCString() }, 0],
    [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '1m2s' }, 62_000],
    [
      {
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '120ms',
        'x-ratelimit-remaining-requests': '5',
        'x-ratelimit-reset-requests': '1h',
      },
      120,
    ],
    [
      {
        'anthropic-ratelimit-tokens-remaining': '0',
        'anthropic-ratelimit-tokens-reset': new Date(NOW + 9000).toISOString(),
      },
      9000,
    ],
    [{}, undefined],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '-5' }, undefined],
  ])('%j', (headers, expected) => {
    const told = fault('openai', 429, error({}), headers)
    expect(told.retryAfterMs).toBe(expected)
    expect(told.error.retryAfterMs).toBe(expected)
  })

  test('Gemini says it in the body', () => {
    const body = error({ status: 'RESOURCE_EXHAUSTED', details: [{ '@type': 'RetryInfo', retryDelay: '34s' }] })
    expect(fault('gemini', 429, body).retryAfterMs).toBe(34_000)
  })
})
