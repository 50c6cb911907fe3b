import { describe, expect, test } from 'vitest'
import { edges, edgeStates, node, output, Probe, run, stable, statuses } from './support.ts'

const probes = (...ids: string[]): string => ids.map((id) => `node probe ${id} { value = { ${id} = true } }`).join('\n')

describe('order and concurrency', () => {
  test('runbook#46 diamond: the last node runs once and sees both ids', async () => {
    const probe = new Probe()
    const report = await run(
      `${probes('a', 'b', 'c')}\nnode probe d { value = prev }\n${edges('a b d', 'a c d')}`,
      {},
      probe,
    )
    expect(output(report, 'd')).toEqual({ b: { b: true }, c: { c: true } })
    expect(probe.started.filter((id) => id === 'd')).toEqual(['d'])
  })

  const wide = `${probes('s', 'a', 'b', 'c', 'd')}
    node join j {}
    node loop l { items = [3, 1, 2] }
    node probe x { 
      value = { v = loop.item, i = loop.index }
      ms = loop.item
    }
    node join k {}
    ${edges('s a j', 's b j', 's c j', 's d j l x k')}`

  test('runbook#47 concurrency 1 and 8 give equal reports', async () => {
    const [one, eight] = [await run(wide, { concurrency: 1 }), await run(wide, { concurrency: 8 })]
    expect(one.status).toBe('succeeded')
    expect(stable(eight)).toEqual(stable(one))
  })

  test('runbook#48 concurrency 1 is plan order, 2 is never three at once', async () => {
    const one = new Probe()
    await run(wide, { concurrency: 1 }, one)
    expect(one.started).toEqual(['s', 'a', 'b', 'c', 'd', 'x', 'x', 'x'])
    const two = new Probe()
    const ids = ['a', 'b', 'c', 'd', 'e']
    await run(ids.map((id) => `node probe ${id} { ms = 2 }`).join('\n'), { concurrency: 2 }, two)
    expect(two.mostRunning).toBe(2)
  })

  test('runbook#49 four delays run at once', async () => {
    const delays = ['a', 'b', 'c', 'd'].map((id) => `node delay ${id} { milliseconds = 200 }`).join('\n')
    const report = await run(delays)
    expect(output(report, 'a')).toEqual({ delayed: true, duration: 200 })
    expect(report.durationMs).toBeLessThan(500)
  })

  test('runbook#50 start nodes beside a trigger run too', async () => {
    const report = await run(`node manual t {}\n${probes('a', 'b')}\n${edges('a b')}`)
    expect(statuses(report)).toEqual({ t: 'succeeded', a: 'succeeded', b: 'succeeded' })
  })
})

describe('branches', () => {
  const branch = (condition: string) => `
    node if i { condition = ${condition} }
    ${probes('y', 'n', 'z')}
    node join j {}
    edge i y { condition = "then" }
    edge i n { condition = "else" }
    ${edges('y z j', 'n j')}`

  test('runbook#51 both branches of an if into one join', async () => {
    const report = await run(branch('1 > 2'))
    expect(statuses(report)).toMatchObject({ y: 'unreached', z: 'unreached', n: 'succeeded', j: 'succeeded' })
    expect(output(report, 'j')).toEqual({
      mode: 'all',
      count: 1,
      sources: ['n'],
      results: [{ n: true }],
      merged: { n: true },
    })
    expect(output(report, 'i')).toEqual({ condition: '1 > 2', result: false, branch: 'else' })
    expect(edgeStates(report)).toMatchObject({ 'i->y': 'dead', 'i->n': 'live', 'z->j': 'dead' })
  })

  test('runbook#52 nested if with a dead inner branch: the join runs', async () => {
    const report = await run(`
      node if outer { condition = false }
      node if inner { condition = true }
      ${probes('a', 'b')}
      node join j {}
      edge outer inner { condition = "then" }
      edge outer b { condition = "else" }
      edge inner a { condition = "then" }
      ${edges('a j', 'b j')}`)
    expect(statuses(report)).toEqual({
      outer: 'succeeded',
      inner: 'unreached',
      a: 'unreached',
      b: 'succeeded',
      j: 'succeeded',
    })
  })

  test('runbook#53 a node behind dead branches only is unreached', async () => {
    const report = await run(branch('true'))
    expect(node(report, 'n')).toMatchObject({ status: 'unreached', attempts: [] })
  })

  test('runbook#54 edge when: false is dead, an error ends the run with its range', async () => {
    expect(statuses(await run(`${probes('a', 'b')}\nedge a b { when = prev.a == false }`))).toEqual({
      a: 'succeeded',
      b: 'unreached',
    })
    const failed = await run(`${probes('a', 'b')}\nedge a b { when = prev.nope }`)
    expect(failed).toMatchObject({ status: 'failed', exitCode: 4, error: { code: 'expression_error', node: 'a' } })
    expect(failed.error?.message).toContain('test.hcl:4:24: missing key "nope"')
    expect(failed.error?.range).toMatchObject({ file: 'test.hcl', start: { line: 4, column: 24 } })
  })

  test('runbook#55 a node whose when is false is skipped', async () => {
    const report = await run(
      `
      node probe a { 
        when = false
        value = prev.at.all == null || var.unset
      }
      ${probes('b', 'c')}
      ${edges('a b')}
      edge a c { on = "always" }`,
    )
    expect(statuses(report)).toEqual({ a: 'skipped', b: 'unreached', c: 'succeeded' })
  })

  test('runbook#56 switch to a case and to default; number 1 matches key 1', async () => {
    const choose = (value: string) =>
      run(`
      node switch s {
        expression = ${value}
        cases = { "1" = "one", two = 2 }
      }
      ${probes('one', 'two', 'rest')}
      edge s one { condition = "1" }
      edge s two { condition = "two" }
      edge s rest { condition = "default" }`)
    expect(statuses(await choose('1'))).toMatchObject({ one: 'succeeded', two: 'unreached', rest: 'unreached' })
    expect(statuses(await choose('"x"'))).toMatchObject({ one: 'unreached', rest: 'succeeded' })
    expect(output(await choose('"two"'), 's')).toEqual({ expression: 'two', value: 'two', matched: true })
  })
})

describe('joins and variables', () => {
  test('runbook#57 of parallel set nodes the later in plan order wins', async () => {
    const text = `
      node probe s {}
      node probe a { ms = 2 }
      node set x {
        name  = "v"
        value = "x"
      }
      node set y {
        name  = "v"
        value = "y"
      }
      node probe last { value = var.v }
      ${edges('s a x last', 's y last')}`
    for (let i = 0; i < 50; i++) expect(output(await run(text), 'last')).toBe('y')
  })

  test('runbook#58 join all gives results in order of edges', async () => {
    const report = await run(
      `${probes('a', 'b')}\nnode probe c { value = 1 }\nnode join j {}\n${edges('b j', 'c j', 'a j')}`,
    )
    expect(output(report, 'j')).toEqual({
      mode: 'all',
      count: 3,
      sources: ['b', 'c', 'a'],
      results: [{ b: true }, 1, { a: true }],
      merged: { b: true, a: true },
    })
  })

  test('runbook#59 join first takes the fast branch and cancels the others', async () => {
    const report = await run(`
      node probe slow { ms = 5000 }
      ${probes('fast', 'after')}
      node join j { 
        mode = "first"
        cancelOthers = true
      }
      ${edges('slow j', 'fast j after')}`)
    expect(output(report, 'j')).toMatchObject({ mode: 'first', count: 1, sources: ['fast'] })
    expect(statuses(report)).toEqual({ slow: 'cancelled', fast: 'succeeded', j: 'succeeded', after: 'succeeded' })
    expect(report).toMatchObject({ status: 'succeeded', exitCode: 0 })
  })

  test('runbook#60 a stream join runs what is behind it once per arrival', async () => {
    const probe = new Probe()
    const report = await run(
      `
      node probe a { 
        ms = 30
        value = 1
      }
      node probe b { value = 2 }
      node probe c { 
        ms = 15
        value = 3
      }
      node join s { mode = "stream" }
      node probe each { value = loop.item * 10 }
      node join end {}
      ${edges('a s', 'b s', 'c s each end')}`,
      {},
      probe,
    )
    expect(output(report, 'end')).toMatchObject({ mode: 'loop', count: 3, results: [20, 30, 10] })
    expect(probe.started.filter((id) => id === 'each')).toHaveLength(3)
  })
})

describe('loops', () => {
  test('runbook#61 results are by index at any concurrency', async () => {
    const report = await run(`
      node loop l { 
        items = [40, 1, 20, 1]
        concurrency = 4
      }
      node probe body { 
        ms = loop.item
        value = { n = loop.item }
      }
      node join j {}
      ${edges('l body j')}`)
    const results = [{ n: 40 }, { n: 1 }, { n: 20 }, { n: 1 }]
    expect(output(report, 'l')).toEqual({ loop: true, count: 4, results })
    expect(output(report, 'j')).toEqual({
      mode: 'loop',
      count: 4,
      results,
      merged: { n_0: 40, n_1: 1, n_2: 20, n_3: 1 },
    })
    expect(node(report, 'l')?.iterations).toHaveLength(4)
  })

  test('runbook#62 without a join everything behind the loop runs per item', async () => {
    const probe = new Probe()
    const report = await run(
      `node loop l { items = toset(["b", "a"]) }\n${probes('x')}\nnode probe y { value = "\${loop.index}\${loop.item}" }\n${edges('l x y')}`,
      {},
      probe,
    )
    expect(output(report, 'l')).toEqual({ loop: true, count: 2, results: ['0a', '1b'] })
    expect(probe.started).toEqual(['x', 'y', 'x', 'y'])
  })

  test('runbook#63 map items in key order, nested loops see the outer item', async () => {
    const report = await run(`
      node loop outer { items = { b = 1, a = 2 } }
      node loop inner { items = range(loop.item.value) }
      node probe body { value = "\${loop.parent.item.key}\${loop.parent.key}\${loop.index}/\${loop.count}" }
      node join j {}
      node join k {}
      ${edges('outer inner body j k')}`)
    expect(output(report, 'k')).toMatchObject({ count: 2 })
    const results = (output(report, 'outer') as { results: { results: string[] }[] }).results
    expect(results.map((result) => result.results)).toEqual([['aa0/2', 'aa1/2'], ['bb0/1']])
  })

  test('runbook#64 an if and an inner join in a body whose join is named', async () => {
    const report = await run(`
      node loop l { 
        items = [1, 2, 3]
        join = "end"
      }
      node if odd { condition = loop.item % 2 == 1 }
      node probe a { value = "odd \${loop.item}" }
      node probe b { value = "even \${loop.item}" }
      node join inner {}
      node probe c { value = prev.results[0] }
      node join end {}
      ${edges('l odd')}
      edge odd a { condition = "then" }
      edge odd b { condition = "else" }
      ${edges('a inner', 'b inner c end')}`)
    expect(output(report, 'end')).toMatchObject({ results: ['odd 1', 'even 2', 'odd 3'] })
  })

  test('runbook#65 no items: the join runs; too many items; bad items', async () => {
    const loop = (items: string) =>
      run(`node loop l { items = ${items} }\n${probes('x')}\nnode join j {}\n${edges('l x j')}`)
    const empty = await loop('[]')
    expect(statuses(empty)).toEqual({ l: 'succeeded', x: 'unreached', j: 'succeeded' })
    expect(output(empty, 'j')).toEqual({ mode: 'loop', count: 0, results: [], merged: {} })
    expect(await loop('range(10001)')).toMatchObject({ status: 'failed', error: { code: 'loop_limit', node: 'l' } })
    expect(await loop('"no json"')).toMatchObject({ error: { code: 'items_invalid' } })
    expect(output(await loop('"[1, 2]"'), 'l')).toMatchObject({ count: 2 })
  })

  test('runbook#66 onItemError both ways; itemVar, indexVar', async () => {
    const loop = (mode: string) =>
      run(`
      node loop l { 
        items = [1, 2, 3]
        on_item_error = "${mode}"
        itemVar = "n"
        indexVar = "i"
      }
      node probe x {
        fail = var.n == 2 ? "not_found" : null
        value = var.n * 10 + var.i
      }
      node join j {}
      ${edges('l x j')}`)
    const kept = await loop('continue')
    expect(output(kept, 'l')).toMatchObject({
      results: [10, null, 32],
      errors: [{ index: 1, error: { code: 'not_found' } }],
    })
    expect(output(kept, 'j')).toMatchObject({ count: 3, errors: [{ index: 1 }] })
    const stopped = await loop('fail')
    expect(stopped).toMatchObject({ status: 'failed', error: { node: 'l', code: 'not_found', details: { index: 1 } } })
    expect(statuses(stopped)).toEqual({ l: 'failed', x: 'failed', j: 'not_run' })
  })

  test('an error edge of a loop leads out of it', async () => {
    const report = await run(`
      node loop l { items = [1] }
      node probe x { fail = "conflict" }
      node join j {}
      node probe handler { value = prev.error.details.index }
      ${edges('l x j')}
      edge l handler { on = "error" }`)
    expect(statuses(report)).toEqual({ l: 'failed', x: 'failed', j: 'unreached', handler: 'succeeded' })
    expect(output(report, 'handler')).toBe(0)
    expect(report.status).toBe('succeeded')
  })

  test('runbook#67 a failing branch of a split cancels the others, or lets them end', async () => {
    const split = (mode: string) =>
      run(`
      node split s { ${mode} }
      node probe bad { 
        fail = "not_found"
        ms = 5
      }
      node probe slow { ms = 60 }
      ${probes('after')}
      node join j {}
      ${edges('s bad j', 's slow after j')}`)
    expect(statuses(await split(''))).toEqual({
      s: 'succeeded',
      bad: 'failed',
      slow: 'cancelled',
      after: 'not_run',
      j: 'not_run',
    })
    const finished = await split('failFast = false')
    expect(statuses(finished)).toEqual({
      s: 'succeeded',
      bad: 'failed',
      slow: 'succeeded',
      after: 'succeeded',
      j: 'not_run',
    })
    expect(finished).toMatchObject({ status: 'failed', error: { node: 'bad' } })
    expect(statuses(await split('executionMode = "continue"'))).toEqual(statuses(finished))
    expect(statuses(await split('executionMode = "failfast"'))).toMatchObject({ slow: 'cancelled' })
  })
})
