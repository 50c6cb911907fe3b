import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  allocate,
  budgetStateOf,
  checkCovers,
  reserve,
  settle,
  shortageOf,
  topUp,
  type Account,
} from '../../src/kernel/budgets.ts'
import { budgetPolicy, budgetTopUp, type BudgetPolicy } from '../../src/kernel/model/budget.ts'

const SEED = 20261122
const account = (fields: Partial<Account>): Account => ({ usage: {}, reservations: {}, allocations: {}, ...fields })

test('kernel#29 zero, negative and unknown members are refused; the warning begins at 800 permille, or where it is set', () => {
  for (const policy of [
    { maxTurns: 0 },
    { maxTurns: -1 },
    { maxTurns: 1.5 },
    { maxSteps: 1 },
    { warningPermille: 1001 },
  ]) {
    expect([policy, budgetPolicy.safeParse(policy).success]).toEqual([policy, false])
  }
  for (const added of [{}, { maxTurns: 0 }, { warningPermille: 900 }])
    expect(budgetTopUp.safeParse(added).success).toBe(false)
  const state = (turns: number, budget: BudgetPolicy): unknown => budgetStateOf(account({ budget, usage: { turns } }))
  expect([799, 800, 999, 1000].map((turns) => state(turns, { maxTurns: 1000 }))).toEqual([
    'active',
    'warning',
    'warning',
    'exhausted',
  ])
  expect(state(800, { maxTurns: 1000, warningPermille: 0 })).toBe('warning')
  expect(state(800, { maxTurns: 1000, warningPermille: 801 })).toBe('active')
  expect(budgetStateOf(account({}))).toBeUndefined()
})

test('kernel#31 exactly at the limit is affordable, one above is not; reservations and total tokens count', () => {
  const budget = { maxTotalTokens: 100 }
  const kept = account({
    budget,
    usage: { inputTokens: 40 },
    reservations: reserve({}, 't1', { inputTokens: 10, outputTokens: 20 }, 0),
  })
  expect(shortageOf(kept, { outputTokens: 30 })).toBeUndefined()
  expect(shortageOf(kept, { outputTokens: 31 })).toEqual({ dimension: 'maxTotalTokens', required: 31, remaining: 30 })
  expect(() => checkCovers(account({ budget: { maxTurns: 2 }, allocations: { r: { maxTurns: 3 } } }))).toThrow(
    'maxTurns',
  )
  expect(() => checkCovers(account({ allocations: { r: {} } }))).toThrow(expect.objectContaining({ status: 409 }))
})

test('kernel#28 a child of a bounded parent needs a budget with room in each dimension, and gets the rest of what it leaves open', () => {
  const parent = account({
    budget: { maxTurns: 10, maxActions: 5 },
    usage: { turns: 2 },
    allocations: { a: { maxTurns: 3 } },
  })
  expect(allocate(parent, { maxTurns: 5 })).toEqual({ maxTurns: 5, maxActions: 5 })
  expect(() => allocate(parent, undefined)).toThrow(expect.objectContaining({ status: 400 }))
  expect(() => allocate(parent, { maxTurns: 6 })).toThrow(expect.objectContaining({ status: 409 }))
  const full = account({ budget: { maxTurns: 3 }, allocations: { a: { maxTurns: 3 } } })
  expect(() => allocate(full, { maxActions: 1 })).toThrow('maxTurns needs 1, 0 is left')
  expect(allocate(account({}), undefined)).toBeUndefined()
})

test('kernel#30 a top-up raises bounded dimensions and fits the parent', () => {
  const parent = account({ budget: { maxTurns: 10 }, allocations: { r: { maxTurns: 7 } } })
  expect(topUp({ maxTurns: 7 }, { maxTurns: 3 }, parent)).toEqual({ maxTurns: 10 })
  expect(() => topUp({ maxTurns: 7 }, { maxTurns: 4 }, parent)).toThrow('maxTurns needs 4, 3 is left')
  expect(() => topUp({ maxTurns: 7 }, { maxActions: 1 }, parent)).toThrow(expect.objectContaining({ status: 400 }))
  expect(topUp({ maxTurns: 7 }, { maxTurns: 400 }, undefined)).toEqual({ maxTurns: 407 })
})

test('whatever is reserved and settled: a reservation that was affordable never breaks the limit, and none is left', () => {
  const usage = fc.record({ turns: fc.nat(3), inputTokens: fc.nat(50), outputTokens: fc.nat(50) })
  const work = fc.record({ asked: usage, share: fc.nat(100), settleAfter: fc.nat(3) })
  fc.assert(
    fc.property(fc.array(work, { maxLength: 15 }), (works) => {
      let now = account({ budget: { maxTurns: 8, maxTotalTokens: 200 } })
      const open: { id: string; used: object; at: number }[] = []
      const settleDue = (step: number): void => {
        for (const one of open.filter(({ at }) => at <= step)) now = { ...now, ...settle(now, one.id, one.used) }
        open.splice(0, open.length, ...open.filter(({ at }) => at > step))
      }
      works.forEach(({ asked, share, settleAfter }, step) => {
        if (!shortageOf(now, asked)) {
          const id = `t${step}`
          now = { ...now, reservations: reserve(now.reservations, id, asked, 0) }
          const used = Object.fromEntries(
            Object.entries(asked).map(([name, value]) => [name, Math.floor((value * share) / 100)]),
          )
          open.push({ id, used, at: step + settleAfter })
        }
        settleDue(step)
        expect(shortageOf(now, {})).toBeUndefined()
      })
      settleDue(Infinity)
      expect(now.reservations).toEqual({})
      expect(shortageOf(now, {})).toBeUndefined()
    }),
    { seed: SEED },
  )
})
