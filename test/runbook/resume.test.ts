import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { JournalError, JournalFile, type JournalMode } from '../../src/runbook/run/journal.ts'
import type { RunOptions } from '../../src/runbook/run/options.ts'
import { readJournal } from '../../src/runbook/run/read-journal.ts'
import type { RunReport } from '../../src/runbook/run/report.ts'
import { ChangedError, prepareResume, type ResumeOptions } from '../../src/runbook/resume.ts'
import { edges, node, output, parsed, Probe, run, statuses } from './support.ts'

let directory: string
beforeEach(() => {
  directory = join(mkdtempSync(join(tmpdir(), 'runbook-')), 'r1')
})
afterEach(() => rmSync(join(directory, '..'), { recursive: true }))

const journal = (mode: JournalMode = 'on_failure'): JournalFile => new JournalFile(directory, mode)
const file = (): string => readFileSync(join(directory, 'journal.jsonl'), 'utf8')

/** Runs `body` with what the journal in `directory` has finished. */
async function resume(
  body: string,
  {
    probe = new Probe(),
    run: options = {},
    ...more
  }: { probe?: Probe; run?: Partial<RunOptions> } & Partial<ResumeOptions> = {},
): Promise<RunReport> {
  const hidden = Object.fromEntries(
    Object.entries(options.secrets ?? {}).map(([name, value]) => [`secret.${name}`, value]),
  )
  const state = prepareResume(parsed(body), readJournal(directory, hidden), { from: directory, ...more })
  const { now: _now, ...rest } = { now: undefined, ...options }
  return run(body, { ...rest, resume: state }, probe)
}

const three = (third: string, first = 'value = { v = timestamp() }', comment = '') => `
  ${comment}
  node probe a { ${first} }
  node set b {
    name = "x"
    value = prev
  }
  node probe c { ${third} }
  node probe d { value = [var.x, nodes.a.output, run.attempt] }
  ${edges('a b c d')}`

describe('resume', () => {
  test('runbook#124 the third node repaired: only it and later ones run', async () => {
    const broken = await run(three('fail = "not_found"'), { journal: journal() })
    expect(broken).toMatchObject({ status: 'failed', journal: join(directory, 'journal.jsonl') })
    const probe = new Probe()
    const report = await resume(three('value = 1'), { probe })
    expect(report.status).toBe('succeeded')
    expect(probe.started).toEqual(['c', 'd'])
    expect(report.nodes.map(({ id, reused }) => [id, reused])).toEqual([
      ['a', true],
      ['b', true],
      ['c', undefined],
      ['d', undefined],
    ])
  })

  test('runbook#125 the run keeps its id and its start', async () => {
    await run(three('fail = "not_found"'), { journal: journal() })
    const report = await resume(three('value = timestamp()'))
    expect(report.run).toEqual({ id: 'r1', attempt: 2, resumedFrom: directory })
    expect(output(report, 'c')).toBe('2026-01-01T00:00:00Z')
    expect(output(report, 'd')).toEqual([{ v: '2026-01-01T00:00:00Z' }, { v: '2026-01-01T00:00:00Z' }, 2])
  })

  test('runbook#126 a change upstream is refused, or reruns what depends on it', async () => {
    await run(three('fail = "not_found"'), { journal: journal() })
    const changed = three('value = 1', 'value = 7')
    await expect(resume(changed)).rejects.toThrow(ChangedError)
    await expect(resume(changed)).rejects.toThrow('node "a"')
    const probe = new Probe()
    const report = await resume(changed, { probe, acceptChanges: true })
    expect(probe.started).toEqual(['a', 'c', 'd'])
    expect(output(report, 'd')).toEqual([7, 7, 2])
  })

  test('runbook#127 comments, layout and descriptions are no change', async () => {
    await run(three('fail = "not_found"'), { journal: journal() })
    const edited = three('value = 1', 'value   =   { v = timestamp() /* now */ }', '# a comment')
    expect((await resume(edited)).status).toBe('succeeded')
  })

  test('a changed local changes the nodes that use it', async () => {
    const body = (local: string, fail: string) =>
      `locals { l = ${local} }\nnode probe a { value = local.l }\nnode probe b { value = 1 ${fail} }\n${edges('a b')}`.replace(
        ' fail',
        '\nfail',
      )
    const failing = body('1', '').replace('{ value = 1  }', '{ fail = "conflict" }')
    await run(failing, { journal: journal() })
    await expect(resume(body('2', ''))).rejects.toThrow('node "a"')
    expect((await resume(body('1', ''))).status).toBe('succeeded')
  })

  test('runbook#128 a loop that failed at item 7 reuses the items before', async () => {
    const loop = (fail: string) => `
      node loop l { items = range(9) }
      node probe x {
        value = loop.item
        fail = ${fail}
      }
      node join j {}
      ${edges('l x j')}`
    await run(loop('loop.index == 7 ? "not_found" : null'), { journal: journal() })
    const probe = new Probe()
    const report = await resume(loop('null'), { probe, acceptChanges: true })
    expect(report.status).toBe('succeeded')
    // the body was edited, so it runs again for every item
    expect(probe.started).toHaveLength(9)
    const untouched = new Probe()
    await run(loop('loop.index == 7 && var.bad ? "not_found" : null'), { journal: journal(), vars: { bad: true } })
    const repaired = await resume(loop('loop.index == 7 && var.bad ? "not_found" : null'), {
      probe: untouched,
      run: { vars: { bad: false } },
    })
    expect(untouched.started).toEqual(['x', 'x'])
    expect(output(repaired, 'j')).toMatchObject({ results: [0, 1, 2, 3, 4, 5, 6, 7, 8] })
  })

  test('runbook#129 a journal cut off by a kill: finished nodes are reused, an external one is named', async () => {
    await run(`node probe a { value = 1 }\nnode remote b { value = 2 }\n${edges('a b')}`, {
      journal: journal('always'),
    })
    const lines = file().trimEnd().split('\n')
    const cut = lines.findIndex((line) => line.includes('"started"')) + 1
    writeFileSync(join(directory, 'journal.jsonl'), `${lines.slice(0, cut).join('\n')}\n{"type":"node","path":"b","sta`)
    const read = readJournal(directory)
    expect([...read.records.keys()]).toEqual(['a'])
    expect(read.unfinished).toEqual(['b'])
  })

  test('runbook#130 a rotated secret: the new value is used, the old one is nowhere on disk', async () => {
    const body = (fail: string) =>
      `node probe a { value = "token \${secret.key}" }\nnode probe b {\n value = nodes.a.output == "token \${secret.key}"\n ${fail}\n}\n${edges('a b')}`
    await run(body('fail = "forbidden"'), { journal: journal('always'), secrets: { key: 'old-secret' } })
    expect(file()).not.toContain('old-secret')
    const report = await resume(body(''), { run: { secrets: { key: 'new-secret' } } })
    expect(output(report, 'b')).toBe(true)
  })

  test('changed inputs and trigger data are refused', async () => {
    const body = 'input who { default = "x" }\nnode probe a { fail = "conflict" }'
    await run(body, { journal: journal(), triggerData: { n: 1 } })
    await expect(resume(body, { inputs: { who: 'y' } })).rejects.toThrow('input "who"')
    await expect(resume(body, { triggerData: { n: 2 } })).rejects.toThrow('trigger data')
  })
})

describe('the journal on disk', () => {
  test('runbook#132 torn line ignored, broken line refused, modes, lock', async () => {
    await run('node probe a {}', { journal: journal('always') })
    expect(statSync(directory).mode & 0o777).toBe(0o700)
    expect(statSync(join(directory, 'journal.jsonl')).mode & 0o777).toBe(0o600)
    expect(existsSync(join(directory, 'lock'))).toBe(false)
    const text = file()
    writeFileSync(join(directory, 'journal.jsonl'), `${text}{"type":"no`)
    expect(readJournal(directory).records.size).toBe(1)
    writeFileSync(join(directory, 'journal.jsonl'), `{"broken\n${text}`)
    expect(() => readJournal(directory)).toThrow(JournalError)
    writeFileSync(join(directory, 'lock'), '1')
    await expect(run('node probe a {}', { journal: journal('always') })).rejects.toThrow(
      'process 1 uses this run directory',
    )
  })

  test('a run that succeeds leaves no journal with on_failure', async () => {
    await run('node probe a {}', { journal: journal() })
    expect(existsSync(directory)).toBe(false)
  })

  test('statuses of the first run are kept in the second', async () => {
    const body = (fail: string) => `
      node probe a { 
        fail = "conflict"
        on_error = "continue"
      }
      node probe b { when = false }
      node probe c { value = nodes.a.error.code }
      node probe d { ${fail} }
      ${edges('a c d', 'a b')}`
    await run(body('fail = "forbidden"'), { journal: journal() })
    const report = await resume(body(''))
    expect(statuses(report)).toEqual({ a: 'failed', b: 'skipped', c: 'succeeded', d: 'succeeded' })
    expect(node(report, 'a')).toMatchObject({ reused: true, error: { code: 'conflict' } })
    expect(report.toleratedFailures).toHaveLength(1)
  })
})
