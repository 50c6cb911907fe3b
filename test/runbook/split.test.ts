import { expect, test } from 'vitest'
import { edges, output, run, statuses } from './support.ts'

test('a loop in a branch of a split ends although another branch has failed', async () => {
  const report = await run(
    `node split s { failFast = false }
     node probe bad {
       fail = "not_found"
     }
     node probe first { ms = 5 }
     node loop l { items = [1, 2] }
     node probe body { value = loop.item }
     node join inner {}
     node probe after { value = prev.results }
     node join j {}
     ${edges('s bad j', 's first l body inner after j')}`,
    { timeoutMs: 5000 },
  )
  expect(report).toMatchObject({ status: 'failed', error: { node: 'bad' } })
  expect(statuses(report)).toMatchObject({ l: 'succeeded', after: 'succeeded', j: 'not_run' })
  expect(output(report, 'after')).toEqual([1, 2])
})

test('splits in several iterations fail each for itself', async () => {
  const report = await run(
    `node loop l {
       items       = [1, 2, 3]
       concurrency = 3
       onItemError = "continue"
       join        = "end"
     }
     node split s { failFast = false }
     node probe bad {
       fail = loop.item < 3 ? "conflict" : null
     }
     node probe slow {
       ms    = 5 * loop.item
       value = loop.item
     }
     node join j {}
     node join end {}
     ${edges('l s bad j', 's slow j end')}`,
    { timeoutMs: 5000 },
  )
  expect(report.status).toBe('succeeded')
  expect(output(report, 'end')).toMatchObject({
    count: 3,
    results: [null, null, { count: 2 }],
    errors: [{ index: 0 }, { index: 1 }],
  })
})

test('two splits at once, a failure in each: the branches of both end', async () => {
  const report = await run(
    ['a', 'b']
      .map(
        (name) => `
      node split ${name} { failFast = false }
      node probe ${name}_bad { fail = "conflict" }
      node probe ${name}_slow { ms = 10 }
      node probe ${name}_after {}
      node join ${name}_join {}
      ${edges(`${name} ${name}_bad ${name}_join`, `${name} ${name}_slow ${name}_after ${name}_join`)}`,
      )
      .join('\n'),
    { timeoutMs: 5000 },
  )
  expect(report).toMatchObject({ status: 'failed', error: { node: 'a_bad' } })
  expect(statuses(report)).toMatchObject({ a_after: 'succeeded', b_after: 'succeeded' })
})
