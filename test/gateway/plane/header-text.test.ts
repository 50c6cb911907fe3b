import { expect, test } from 'vitest'
import { listed, printable } from '../../../src/gateway/plane/header-text.ts'
import { CHAT, credentialAt, startRig, startUpstream } from './support.ts'

test('a text outside ASCII is told percent-encoded, and what is printable as it is', () => {
  expect(printable('ft:gpt 4~100%/"x"')).toBe('ft:gpt 4~100%/"x"')
  expect(decodeURIComponent(printable('modèle/模型 🦊'))).toBe('modèle/模型 🦊')
  expect(printable('a\r\nb\u007f')).toBe('a%0D%0Ab%7F')
  expect(printable('half \ud83e')).toBe('half %EF%BF%BD')
  expect(printable('x'.repeat(600))).toHaveLength(512)
})

test('of a list go as many as fit, none of them cut', () => {
  expect(listed(['größe', 'n'])).toBe('gr%C3%B6%C3%9Fe,n')
  const names = Array.from({ length: 100 }, (_, i) => `größe${i}`)
  const text = listed(names)
  expect(text.length).toBeLessThanOrEqual(512)
  expect(decodeURIComponent(text).split(',')).toEqual(names.slice(0, text.split(',').length))
})

test('the model of an answer is told whatever its name', async () => {
  const upstream = await startUpstream()
  const credentials = [credentialAt(1, upstream, { modelMapping: new Map([['m', 'modèle-\u6a21']]) })]
  const { call } = await startRig({ credentials })
  expect((await call('chat/completions', CHAT)).headers['x-mem-model']).toBe('mod%C3%A8le-%E6%A8%A1')
})
