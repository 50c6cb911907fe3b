import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Turn } from '../../../src/gateway/plane/turn.ts'

function turnOf(isAlone = false) {
  const done: string[] = []
  const told: string[] = []
  const turn = new Turn({ error: (_fields, message) => void told.push(message) }, () => isAlone)
  return { turn, done, told, mark: (name: string) => () => void done.push(name) }
}

test('what calls leave is done at the end of the turn: answers, calls, requests, records, each in their order', async () => {
  const { turn, done, mark } = turnOf()
  turn.record(mark('record'))
  turn.request(mark('first request'))
  turn.request(mark('second request'))
  turn.call(mark('call'))
  turn.answer(mark('answer'))
  expect(done).toEqual([])
  await nextTurn()
  expect(done).toEqual(['answer', 'call', 'first request', 'second request', 'record'])
})

test('a job that a job leaves is not forgotten', async () => {
  const { turn, done, mark } = turnOf()
  turn.request(() => {
    turn.record(mark('record'))
    turn.answer(mark('answer'))
  })
  await nextTurn()
  expect(done).toEqual(['record'])
  await nextTurn()
  expect(done).toEqual(['record', 'answer'])
})

test('answers that come while many calls begin wait for a row of them, not for all; so do records', async () => {
  const { turn, done, mark } = turnOf()
  const begin = (): void => {
    done.push('call')
    turn.request(mark('request'))
  }
  for (let i = 0; i < 40; i++) turn.call(begin)
  turn.record(mark('record'))
  await nextTurn()
  turn.answer(mark('answer'))
  await nextTurn()
  const row = (length: number): string[] => [
    ...Array<string>(length).fill('call'),
    ...Array<string>(length).fill('request'),
  ]
  expect(done).toEqual([...row(32), 'record', 'answer', ...row(8)])
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
  for (let i = 0; i < 40; i++) turn.call(mark('before'))
  turn.close()
  turn.call(mark('after'))
  expect(done).toEqual([...Array<string>(40).fill('before'), 'after'])
})

test('a call that is alone goes out at once; its record waits', async () => {
  const { turn, done, mark } = turnOf(true)
  turn.record(mark('record'))
  turn.call(mark('call'))
  turn.request(mark('request'))
  turn.answer(mark('answer'))
  expect(done).toEqual(['call', 'request', 'answer'])
  await nextTurn()
  expect(done).toEqual(['call', 'request', 'answer', 'record'])
})
