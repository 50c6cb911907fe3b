import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Turn } from '../../../src/gateway/plane/turn.ts'

function turnOf(isAlone = false) {
  const done: string[] = []
  const told: string[] = []
  const turn = new Turn({ error: (_fields, message) => void told.push(message) }, () => isAlone)
  return { turn, done, told, mark: (name: string) => () => void done.push(name) }
}

test('what calls leave is done at the end of the turn: requests, answers, records, each in their order', async () => {
  const { turn, done, mark } = turnOf()
  turn.record(mark('record'))
  turn.answer(mark('answer'))
  turn.request(mark('first request'))
  turn.request(mark('second request'))
  expect(done).toEqual([])
  await nextTurn()
  expect(done).toEqual(['first request', 'second request', 'answer', 'record'])
})

test('a job that a job leaves is not forgotten', async () => {
  const { turn, done, mark } = turnOf()
  turn.answer(() => {
    turn.record(mark('record'))
    turn.request(mark('request'))
  })
  await nextTurn()
  expect(done).toEqual(['record'])
  await nextTurn()
  expect(done).toEqual(['record', 'request'])
})

test('a job that fails is told to the log, and keeps none from being done', async () => {
  const { turn, done, told, mark } = turnOf()
  turn.answer(() => {
    throw new Error('broken')
  })
  turn.answer(mark('answer'))
  turn.record(mark('record'))
  await nextTurn()
  expect(done).toEqual(['answer', 'record'])
  expect(told).toEqual(['what a call left for the end of its turn failed'])
})

test('once it is closed nothing waits', () => {
  const { turn, done, mark } = turnOf()
  turn.answer(mark('before'))
  turn.close()
  turn.answer(mark('after'))
  expect(done).toEqual(['before', 'after'])
})

test('a call that is alone goes out at once; its record waits', async () => {
  const { turn, done, mark } = turnOf(true)
  turn.record(mark('record'))
  turn.request(mark('request'))
  turn.answer(mark('answer'))
  expect(done).toEqual(['request', 'answer'])
  await nextTurn()
  expect(done).toEqual(['request', 'answer', 'record'])
})
