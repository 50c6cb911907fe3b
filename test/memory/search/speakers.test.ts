import { expect, test } from 'vitest'
import { speakerOf, speakersAskedFor } from '../../../src/memory/search/speakers.ts'

test('a text that begins with a name and a colon has a speaker', () => {
  expect(speakerOf('Ada Lovelace: the engine weaves.')).toBe('ada lovelace')
  expect(speakerOf('  user: hello')).toBe('user')
  expect(speakerOf('Zoë: ja')).toBe('zoe')
})

test('other texts have none', () => {
  const texts = ['', 'no colon', '12:30 lunch', 'https://a.example/', 'one two three four: a heading', ': empty']
  expect(texts.map(speakerOf)).toEqual(texts.map(() => undefined))
})

test('a query asks for the speakers it names', () => {
  const asked = speakersAskedFor("What is Ada's engine made of?")
  expect([asked('ada lovelace'), asked('charles'), asked('user')]).toEqual([true, false, false])
})

test('a query in the first person asks for the user', () => {
  const asked = speakersAskedFor('Where did I leave my keys?')
  expect([asked('user'), asked('assistant')]).toEqual([true, false])
})
