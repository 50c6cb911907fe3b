import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { prepareResume } from '../../src/runbook/resume.ts'
import { JournalFile } from '../../src/runbook/run/journal.ts'
import { readJournal } from '../../src/runbook/run/read-journal.ts'
import type { RunReport } from '../../src/runbook/run/report.ts'
import { findings, parsed, Probe, run, stable } from './support.ts'

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

/** What a run gave, apart from what a resumed one adds. */
const results = (report: RunReport): unknown =>
  JSON.parse(
    JSON.stringify([report.status, report.nodes, report.edges, report.toleratedFailures], (key, value: unknown) =>
      ['startedAt', 'completedAt', 'durationMs', 'attempts', 'reused', 'iterations'].includes(key) ? undefined : value,
    ),
  )

test('runbook#129 random graphs, killed at any line of their journal, resume to the same results', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'mem-graphs-'))
  const file = join(directory, 'journal.jsonl')
  const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), fc.nat(), async (steps, at) => {
    const text = workflow(steps)
    fc.pre(!findings(text).some((found) => found.startsWith('RB313')))
    rmSync(file, { force: true })
    const full = await run(text, { journal: new JournalFile(directory, 'always') })
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
    const kept = lines.slice(0, 1 + (at % lines.length))
    writeFileSync(file, `${kept.join('\n')}\n`)
    const probe = new Probe()
    const resume = prepareResume(parsed(text), readJournal(directory), { from: directory })
    const resumed = await run(text, { resume, journal: new JournalFile(directory, 'always') }, probe)
    expect(results(resumed)).toEqual(results(full))
    // nothing that has finished is executed a second time
    const finished = kept.flatMap((line): string[] => (line.includes('"type":"node"') ? [JSON.parse(line).path] : []))
    const again = [...readJournal(directory).records.keys()]
    expect(new Set(again).size).toBe(again.length)
    expect(probe.started.filter((id) => finished.includes(id))).toEqual([])
  })
  await fc.assert(property, { numRuns: 150, seed: 9 })
  rmSync(directory, { recursive: true })
})

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
