import { describe, expect, test } from 'vitest'
import { ChangedError, UnusableOutputError, type ResumeOptions } from '../../src/runbook/resume.ts'
import { resumeFromReport } from '../../src/runbook/resume-report.ts'
import type { RunOptions } from '../../src/runbook/run/options.ts'
import type { RunReport } from '../../src/runbook/run/report.ts'
import { edges, node, output, parsed, Probe, run, statuses } from './support.ts'

/** Goes on from a report, as it is read from a file. */
async function goOn(
  body: string,
  report: RunReport,
  {
    probe = new Probe(),
    run: options = {},
    ...more
  }: { probe?: Probe; run?: Partial<RunOptions> } & Partial<ResumeOptions> = {},
): Promise<RunReport> {
  const read = JSON.parse(JSON.stringify(report)) as RunReport
  const resume = resumeFromReport(parsed(body), read, { from: 'report.json', ...more })
  return run(body, { ...options, resume }, probe)
}

const chain = (b: string, a = 'value = 5', comment = ''): string => `
  ${comment}
  node probe a { ${a} }
  node set s {
    name  = "x"
    value = prev
  }
  node probe b { ${b} }
  node probe c { value = [var.x, nodes.a.output, run.attempt] }
  ${edges('a s b c')}`

describe('runbook#131 going on from a report', () => {
  test('the failed node is repaired: only it and later ones run', async () => {
    const failed = await run(chain('fail = "conflict"'))
    const probe = new Probe()
    const report = await goOn(chain('value = prev', 'value = 5', '# a comment'), failed, { probe })
    expect(probe.started).toEqual(['b', 'c'])
    expect(report.run).toEqual({ id: 'r1', attempt: 2, resumedFrom: 'report.json' })
    expect(output(report, 'c')).toEqual([5, 5, 2])
    expect(node(report, 'a')).toMatchObject({ status: 'succeeded', reused: true })
  })

  test('runbook#126 an edit upstream is refused by its name, or reruns what depends on it', async () => {
    const failed = await run(chain('fail = "conflict"'))
    const edited = chain('value = 1', 'value = 7')
    await expect(goOn(edited, failed)).rejects.toThrow(ChangedError)
    await expect(goOn(edited, failed)).rejects.toThrow('node "a"')
    const probe = new Probe()
    const report = await goOn(edited, failed, { probe, acceptChanges: true })
    expect(probe.started).toEqual(['a', 'b', 'c'])
    expect(output(report, 'c')).toEqual([7, 7, 2])
    // so is another way in, a local, an input, trigger data
    const otherEdge = chain('value = 1').replace('edge a s {}', 'edge a s { when = true }')
    await expect(goOn(otherEdge, failed)).rejects.toThrow('node "s"')
    const local = (value: string, b: string) => `locals { l = ${value} }\n${chain(b, 'value = local.l')}`
    const withLocal = await run(local('1', 'fail = "conflict"'))
    await expect(goOn(local('2', 'value = 1'), withLocal)).rejects.toThrow('node "a"')
    const input = (b: string) => `input i { default = 1 }\n${chain(b, 'value = input.i')}`
    const withInput = await run(input('fail = "conflict"'), { triggerData: { n: 1 } })
    await expect(goOn(input('value = 1'), withInput, { inputs: { i: 2 } })).rejects.toThrow('input "i"')
    await expect(goOn(input('value = 1'), withInput, { triggerData: { n: 2 } })).rejects.toThrow('trigger data')
    expect((await goOn(input('value = 1'), withInput, { inputs: { i: 1 } })).status).toBe('succeeded')
  })

  test('a masked or truncated output is refused where it is needed, by whatever name', async () => {
    const secrets = { k: 'secret-value' }
    const failing = (read: string) => `
      node probe a { value = "\${secret.k}!" }
      node set v {
        name  = "hidden"
        value = secret.k
      }
      node probe b { value = 1 }
      node probe c {
        value = ${read}
        fail  = var.bad ? "conflict" : null
      }
      ${edges('a v b c')}`
    const resumed = async (read: string): Promise<RunReport> => {
      const failed = await run(failing(read), { secrets, vars: { bad: true } })
      return goOn(failing(read).replace('var.bad ?', 'false ?'), failed, { run: { secrets, vars: { bad: false } } })
    }
    for (const read of ['nodes.a.output', '"{{nodes.a}}"', 'nodes[input.n].output', 'var.hidden']) {
      await expect(resumed(read.replace('input.n', 'prev == 1 ? "a" : "b"'))).rejects.toThrow(UnusableOutputError)
    }
    await expect(resumed('nodes.a.output')).rejects.toThrow('that are needed: a')
    const fine = await resumed('prev')
    expect(statuses(fine)).toEqual({ a: 'succeeded', v: 'succeeded', b: 'succeeded', c: 'succeeded' })
    // what was not known stays unknown, also in the report of the second run
    expect(node(fine, 'a')).toMatchObject({ reused: true, redacted: true })
    expect(node(fine, 'a')?.output).toBeUndefined()
    // an own type may read what comes before it, a built-in one does where it says so
    const large = (c: string) =>
      `node probe a { value = join("", [for i in range(120000) : "0123456789"]) }\nnode ${c}\n${edges('a c')}`
    const cut = await run(large('probe c { fail = "conflict" }'))
    expect(node(cut, 'a')?.truncated).toBe(true)
    await expect(goOn(large('probe c { value = 1 }'), cut)).rejects.toThrow(UnusableOutputError)
    expect((await goOn(large('transform c { template = "x" }'), cut)).status).toBe('succeeded')
  })

  test('finished iterations of a loop are reused', async () => {
    const loop = `
      node loop l { items = [10, 11, 12] }
      node probe x {
        value = loop.item
        fail  = loop.index == 2 && var.bad ? "not_found" : null
      }
      node join j {}
      ${edges('l x j')}`
    const failed = await run(loop, { vars: { bad: true } })
    const probe = new Probe()
    const report = await goOn(loop, failed, { probe, run: { vars: { bad: false } } })
    expect(probe.started).toEqual(['x'])
    expect(output(report, 'j')).toMatchObject({ results: [10, 11, 12] })
  })

  test('tolerated failures keep their edges', async () => {
    const body = (d: string) => `
      node probe a {
        fail     = "conflict"
        on_error = "continue"
      }
      node probe b { fail = "forbidden" }
      node probe handled { value = prev.error.code }
      node probe c { value = nodes.a.error.code }
      node probe d { ${d} }
      edge b handled { on = "error" }
      ${edges('a b', 'a c d')}`
    const failed = await run(body('fail = "not_found"'))
    const probe = new Probe()
    const report = await goOn(body('value = 1'), failed, { probe })
    expect(probe.started).toEqual(['d'])
    expect(statuses(report)).toEqual({ a: 'failed', b: 'failed', handled: 'succeeded', c: 'succeeded', d: 'succeeded' })
    expect(report).toMatchObject({ status: 'succeeded', toleratedFailures: [{ node: 'a' }, { node: 'b' }] })
  })
})
