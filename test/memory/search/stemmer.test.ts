import { expect, test } from 'vitest'
import { stem } from '../../../src/memory/search/stemmer.ts'

/** The examples of the paper, step by step, carried through all steps. */
const EXAMPLES =
  `caresses caress ponies poni ties ti cats cat feed feed agreed agre plastered plaster bled bled motoring motor
  sing sing conflated conflat troubled troubl sized size hopping hop tanned tan falling fall hissing hiss fizzed fizz
  failing fail filing file happy happi sky sky relational relat conditional condit rational ration digitizer digit
  radically radic differently differ vietnamization vietnam predication predic operator oper feudalism feudal
  decisiveness decis hopefulness hope callousness callous formality formal sensitivity sensit triplicate triplic
  formative form formalize formal electricity electr electrical electr hopeful hope goodness good revival reviv
  allowance allow inference infer airliner airlin gyroscopic gyroscop adjustable adjust defensible defens irritant irrit
  replacement replac adjustment adjust dependent depend adoption adopt communism commun activate activ homologous homolog
  effective effect probate probat rate rate cease ceas controlling control roll roll generalizations gener
  oscillators oscil`.split(/\s+/)

test('words end as in the paper', () => {
  const words = EXAMPLES.filter((_, i) => i % 2 === 0)
  expect(words.map(stem)).toEqual(EXAMPLES.filter((_, i) => i % 2 === 1))
})

test('short words, other letters and digits stay as they are', () => {
  expect(['is', 'élan', 'covid19', 'кошки', '東京'].map(stem)).toEqual(['is', 'élan', 'covid19', 'кошки', '東京'])
})
