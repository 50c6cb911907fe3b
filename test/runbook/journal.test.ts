import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fromJson } from '../../src/runbook/hcl/json.ts'
import { ValueSet, type Value } from '../../src/runbook/hcl/values.ts'
import { prepareResume } from '../../src/runbook/resume.ts'
import { conceal, reveal } from '../../src/runbook/run/concealment.ts'
import { JournalFile } from '../../src/runbook/run/journal.ts'
import { readJournal } from '../../src/runbook/run/read-journal.ts'
import { edges, output, parsed, Probe, run, stable } from './support.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'mem-journal-'))
})
afterEach(() => rmSync(directory, { recursive: true }))
const path = (): string => join(directory, 'journal.jsonl')

const BODY = `
  node probe a { value = { n = 1, s = toset(["b", "a"]), text = "line\\nü" } }
  node set b {
    name  = "x"
    value = prev.n
  }
  node loop l { items = [10, 20, 30] }
  node probe body { value = loop.item + var.x }
  node join j {}
  node probe end { value = [prev.results, nodes.a.output.s == toset(["a", "b"]), var.x] }
  ${edges('a b l body j end')}`

const whole = (): Promise<unknown> => run(BODY, { journal: new JournalFile(directory, 'always') }).then(stable)

/** What a resume from the journal as it is now gives, and what it executed. */
async function resumed() {
  const probe = new Probe()
  const resume = prepareResume(parsed(BODY), readJournal(directory), { from: directory })
  const report = await run(BODY, { resume }, probe)
  return { report, started: probe.started }
}

test('runbook#132 a journal cut at any byte resumes to the same outputs, and nothing finished runs twice', async () => {
  await whole()
  const text = readFileSync(path(), 'utf8')
  const bytes = readFileSync(path())
  const header = bytes.indexOf('\n') + 1
  const expected = output(await run(BODY), 'end')
  const property = fc.asyncProperty(fc.integer({ min: header, max: bytes.length }), async (cut) => {
    writeFileSync(path(), bytes.subarray(0, cut))
    const { report, started } = await resumed()
    expect(output(report, 'end')).toEqual(expected)
    const kept = bytes.subarray(0, cut).toString().split('\n').slice(0, -1)
    const finished = kept.flatMap((line) => /"id":"(a|body|end)"/.exec(line)?.[1] ?? [])
    expect(started.toSorted()).toEqual(without(['a', 'body', 'body', 'body', 'end'], finished))
  })
  await fc.assert(property, { numRuns: 60, seed: 5 })
  expect(text).toContain('"type":"end"')
})

/** A list without as many of each as `removed` has. */
function without(all: readonly string[], removed: readonly string[]): string[] {
  const left = [...all]
  for (const item of removed) left.splice(left.indexOf(item), 1)
  return left
}

test('a resume into another directory leaves a journal that is enough alone', async () => {
  const body = (fail: string) =>
    `node probe a { value = 7 }\nnode probe b { ${fail} }\nnode probe c { value = nodes.a.output }\n${edges('a b c')}`
  await run(body('fail = "conflict"'), { journal: new JournalFile(directory, 'always') })
  const other = join(directory, 'other')
  const first = prepareResume(parsed(body('fail = "forbidden"')), readJournal(directory), { from: directory })
  await run(body('fail = "forbidden"'), { resume: first, journal: new JournalFile(other, 'always') })
  const second = prepareResume(parsed(body('')), readJournal(other), { from: other })
  const probe = new Probe()
  const report = await run(body(''), { resume: second }, probe)
  expect(probe.started).toEqual(['b', 'c'])
  expect(output(report, 'c')).toBe(7)
})

test('two runs of one process do not share a directory', async () => {
  const [first, second] = [new JournalFile(directory, 'always'), new JournalFile(directory, 'always')]
  const header = { runId: 'r', attempt: 1, workflow: 'w', file: 'f', startedAt: '', inputs: {}, sensitive: [] }
  const rest = { triggerData: null, variables: {}, digests: {}, workflowDigest: '', reused: [] }
  const begin = (journal: JournalFile): void =>
    journal.begin({ ...header, ...rest }, { named: {}, mask: (value) => value }, [])
  begin(first)
  expect(() => begin(second)).toThrow(`process ${process.pid} uses this run directory`)
  first.end('succeeded')
  begin(second)
  second.end('succeeded')
})

const value: fc.Arbitrary<Value> = fc
  .jsonValue({ maxDepth: 3 })
  .map((data) => fromJson(data))
  .chain((data) => fc.constantFrom<Value>(data, [data, new ValueSet(['b', 'a'])], { '\u0001set': data, k: '\u0001' }))

test('runbook#130 concealing is undone exactly, whatever the data holds', () => {
  const named = {
    'secret.a': 'hunter2',
    'secret.b': 'secret',
    'secret.c': 'ab',
    'secret.d': 'p"/+ ü',
    'input.p.0': 'hunter2hunter2',
  }
  const encoded = [encodeURIComponent('p"/+ ü'), new URLSearchParams({ t: 'p"/+ ü' }).toString(), 'p\\"/+ ü']
  const texts = fc
    .array(fc.constantFrom(...Object.values(named), ...encoded, 'x', '\u0001', '\u0002', 'secret.a', 'ab'))
    .map((parts) => parts.join(''))
  const property = fc.property(value, texts, (data, text) => {
    const original: Value = [data, text, { [text]: text }]
    const hidden = conceal(original, named)
    const json = JSON.stringify(hidden)
    expect(json).not.toContain('hunter2')
    expect(JSON.stringify(reveal(fromJson(JSON.parse(json)), named, () => expect.unreachable()))).toBe(
      JSON.stringify(original),
    )
  })
  fc.assert(property, { numRuns: 500, seed: 11 })
  const missing: string[] = []
  reveal(conceal('hunter2', named), {}, (name) => missing.push(name))
  expect(missing).toEqual(['secret.a'])
})

test('runbook#130 an encoded secret rotates like a plain one', () => {
  const hidden = conceal(['https://x/?t=a%2Fb%20c', '{"t":"\\"a/b c\\""}', 'a/b c'], { 'secret.k': 'a/b c' })
  expect(JSON.stringify(hidden)).not.toMatch(/a(%2F|\/)b/)
  const rotated = reveal(hidden, { 'secret.k': 'n&"w' }, () => expect.unreachable())
  expect(rotated).toEqual(['https://x/?t=n%26%22w', '{"t":"\\"n&"w\\""}', 'n&"w'])
})

test('a node whose secret is not given any more runs again', async () => {
  const body = `node probe a { value = secret.k }\nnode probe b { fail = "conflict" }\n${edges('a b')}`
  await run(body, { journal: new JournalFile(directory, 'always'), secrets: { k: 'very-secret' } })
  expect([...readJournal(directory).records.values()].find(({ id }) => id === 'a')).toMatchObject({ redacted: true })
  expect(readJournal(directory, { 'secret.k': 'new' }).records.get('a')).toMatchObject({ output: 'new' })
})
