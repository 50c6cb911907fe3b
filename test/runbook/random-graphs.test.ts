import fc from 'fast-check'
import { expect, test } from 'vitest'
import { findings, run, stable } from './support.ts'

interface Step {
  readonly kind: 'probe' | 'set' | 'if' | 'join' | 'loop' | 'failing' | 'skipped'
  /** Where its edges come from: distances back to earlier nodes. */
  readonly back: readonly number[]
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom<Step['kind'][]>('probe', 'probe', 'set', 'if', 'join', 'join', 'loop', 'failing', 'skipped'),
  back: fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { maxLength: 3 }),
})

const BODIES: Record<Step['kind'], (i: number) => string> = {
  probe: (i) => `node probe n${i} { value = { n${i} = prev } }`,
  set: (i) => `node set n${i} {\n name = "v"\n value = ${i}\n}`,
  if: (i) => `node if n${i} { condition = ${i % 2 === 0} }`,
  join: (i) => `node join n${i} {}`,
  loop: (i) => `node loop n${i} {\n items = range(${i % 4})\n concurrency = 2\n}`,
  failing: (i) => `node probe n${i} {\n fail = "conflict"\n on_error = "continue"\n}`,
  skipped: (i) => `node probe n${i} {\n when = false\n}`,
}

function workflow(steps: readonly Step[]): string {
  const nodes = steps.map(({ kind }, i) => BODIES[kind](i))
  const edges = steps.flatMap(({ back }, i) =>
    back.flatMap((distance) => {
      const from = steps[i - distance]
      if (!from) return []
      const condition =
        from.kind === 'if' ? `condition = ${distance % 2 === 0}` : from.kind === 'skipped' ? 'on = "always"' : ''
      return `edge n${i - distance} n${i} { ${condition} }`
    }),
  )
  return [...nodes, ...edges].join('\n')
}

test('runbook#47 random graphs end, with equal reports at any concurrency', async () => {
  const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 14 }), async (steps) => {
    const text = workflow(steps)
    fc.pre(!findings(text).some((found) => found.startsWith('RB313')))
    const [one, two, eight] = [
      await run(text, { concurrency: 1 }),
      await run(text, { concurrency: 2 }),
      await run(text, { concurrency: 8 }),
    ]
    expect(one.status).toBe('succeeded')
    expect(one.nodes.filter(({ status }) => status === 'not_run' || status === 'cancelled')).toEqual([])
    expect(stable(two)).toEqual(stable(one))
    expect(stable(eight)).toEqual(stable(one))
  })
  await fc.assert(property, { numRuns: 300, seed: 7 })
})
