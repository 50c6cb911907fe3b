import fc from 'fast-check'
import { expect, test } from 'vitest'
import { redact, redactor } from '../../../src/gateway/observe/redact.ts'
import { processorTime } from '../../support/processor-time.ts'

const word = (alphabet: string, length: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...alphabet), minLength: length, maxLength: length })

const LETTERS = 'ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz0123456789'

/** Where a secret may stand, and the secret. */
const planted: Record<string, (secret: string) => string> = {
  'a session': (s) => `mst_${s}`,
  'a virtual key': (s) => `mvk_${s}`,
  'a metrics token': (s) => `mmt_${s}`,
  'an OpenAI key': (s) => `Incorrect API key provided: sk-proj-${s}. You can find yours`,
  'a Groq key': (s) => `gsk_${s}`,
  'a Gemini key': (s) => `https://host/v1beta/models?key=AIza${s}&alt=sse`,
  'a JWT': (s) => `Bearer eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.${s} was refused`,
  'a header': (s) => `Authorization: Basic ${s}`,
  'a header in JSON': (s) => JSON.stringify({ authorization: `Bearer ${s}` }),
  'a header in JSON in JSON': (s) => JSON.stringify(JSON.stringify({ 'x-api-key': s })),
  'an Azure key': (s) => `api-key: ${s}`,
  'a Google header': (s) => `x-goog-api-key=${s}`,
  'an AWS token': (s) => `x-amz-security-token:${s}`,
  'a cookie': (s) => `cookie: a=b; session=${s}; c=d`,
  'a cookie that is set': (s) => `Set-Cookie: session=${s}; Path=/`,
  'a private key': (s) => `-----BEGIN RSA PRIVATE KEY-----\n${s}\n-----END RSA PRIVATE KEY-----`,
  'a private key in JSON': (s) =>
    JSON.stringify({ k: `-----BEGIN PRIVATE KEY-----\n${s}\n-----END PRIVATE KEY-----\n` }),
  'a private key cut off': (s) => `-----BEGIN EC PRIVATE KEY-----\n${s}`,
}

test.each(Object.entries(planted))('gateway#12 gateway#100 %s leaves no text', (_where, plant) => {
  const around = fc.constantFrom('', ' ', '"', "'", '(', 'the key is ', '\n', '\\n')
  fc.assert(
    fc.property(around, word(LETTERS, 43), (before, secret) => {
      expect(redact(`${before}${plant(secret)}`)).not.toContain(secret)
    }),
  )
})

test('gateway#100 access key ids and the secrets of a credential leave no text, however they are written', () => {
  expect(redact('AKIAIOSFODNN7EXAMPLE and ASIAIOSFODNN7EXAMPLE')).toBe('AKIA[REDACTED] and ASIA[REDACTED]')
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 8, maxLength: 40 }), fc.string(), (secret, around) => {
      const clean = redactor(['another secret', secret])
      for (const form of [secret, JSON.stringify(secret).slice(1, -1)]) {
        expect(clean(`${around}${form}${around}`).split('[REDACTED]').join('')).not.toContain(form)
      }
    }),
  )
  expect(redactor(['p$1 (x)+'])('key p%241%20(x)%2B, key p$1 (x)+')).toBe('key [REDACTED], key [REDACTED]')
})

test('a longer secret that begins like another goes whole; short ones are none', () => {
  expect(redactor(['secret', 'secret-and-more', 'a'])('secret-and-more, secret, a')).toBe('[REDACTED], [REDACTED], a')
})

test('what people write stays', () => {
  const texts = [
    'The model `gpt-5.2-mini` does not exist or you do not have access to it.',
    'risk-management-and-more, task-list, disk-1234567890',
    'no cookie was sent; bearer authentication is needed',
    'max_tokens: 4096 is above the limit of claude-opus-4-7.',
  ]
  expect(texts.map(redact)).toEqual(texts)
})

test('JSON stays JSON', () => {
  fc.assert(
    fc.property(fc.json({ depthSize: 'small' }), word(LETTERS, 24), (json, secret) => {
      const line = JSON.stringify({
        json,
        authorization: `Bearer ${secret}`,
        inner: JSON.stringify({ cookie: secret }),
      })
      expect(redact(line)).not.toContain(secret)
      JSON.parse(redact(line))
    }),
  )
})

test('in linear time, whatever the text', () => {
  const pieces = [
    'eyJ',
    'eyJ.',
    '-----BEGIN KEY-----',
    '-----END ',
    '-----BEGIN ',
    'cookie:',
    'cookie ',
    'sk-',
    'AKIA',
    'a.',
    ' ',
  ]
  for (const piece of [...pieces, 'authorization: ', 'authorization', 'bearer ', 'mst_', 'secre']) {
    const text = piece.repeat(Math.ceil(2_000_000 / piece.length))
    expect(processorTime(() => redactor(['secret-that-is-long'])(text))).toBeLessThan(2000)
  }
})
