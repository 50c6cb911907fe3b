import { describe, expect, test } from 'vitest'
import { documentTerms, queryTerms, splitIdentifiers, words } from '../../../src/memory/search/analysis.ts'

describe('words', () => {
  test('fold case, marks and compatibility forms in any script', () => {
    expect(words('Café ÉCOLE naïve ﬁne İstanbul Ёлка')).toEqual(['cafe', 'ecole', 'naive', 'fine', 'istanbul', 'елка'])
  })

  test('end at everything but letters and digits', () => {
    expect(words(`"don't" (a*b) AND -c x_y 1.5`)).toEqual(['don', 't', 'a', 'b', 'and', 'c', 'x', 'y', '1', '5'])
  })

  test('are pairs of characters where a script has no spaces', () => {
    expect(words('東京都 is 京')).toEqual(['東京', '京都', 'is', '京'])
    expect(words('iPhone価格')).toEqual(['iphone', '価格'])
    expect(words('한국어')).toEqual(['한국', '국어'])
  })
})

describe('terms', () => {
  test('of a text hold every stem, stop words and single characters too', () => {
    expect(documentTerms('The cats of 東京')).toEqual(['the', 'cat', 'of', '東京', '東', '京'])
  })

  test('of a query leave stop words out', () => {
    expect(queryTerms('What did the cats eat?')).toEqual(['cat', 'eat'])
  })

  test('of a query of stop words alone are those', () => {
    expect(queryTerms('to be or not')).toEqual(['to', 'be', 'or', 'not'])
  })

  test('find what hyphens join in either spelling', () => {
    expect(documentTerms('IL-6')).toEqual(['il', '6', 'il6'])
    expect(documentTerms('co\u2010op')).toEqual(['co', 'op', 'coop'])
    expect(queryTerms('follow-up')).toContain(queryTerms('followup')[0])
  })
})

test('identifiers are split where their case changes', () => {
  expect(splitIdentifiers('getUserById HTTPServer snake_case DMT1')).toBe('get User By Id HTTP Server snake_case DMT1')
})
