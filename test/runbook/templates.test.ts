import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { edges, node, output, run, stable } from './support.ts'

/** The output of a node behind `a`, whose output is `value`. */
const behind = async (value: string, expression: string, options = {}): Promise<unknown> =>
  output(
    await run(`node probe a { value = ${value} }\nnode probe b { value = ${expression} }\n${edges('a b')}`, options),
    'b',
  )

describe('{{ path }}', () => {
  test('runbook#6 doubled markers stay literal through a run', async () => {
    expect(await behind('1', '"$${x} %%{x}"')).toBe('${x} %{x}')
  })

  test('runbook#40 whole: the value; inside text: JSON; at any depth', async () => {
    const a = '{ items = [1, "x"], m = { k = null } }'
    expect(await behind(a, '"{{nodes.a.items}}"')).toEqual([1, 'x'])
    expect(await behind(a, '"got {{ nodes.a.items }} {{prev.m}} {{prev.m.k}}."')).toBe('got [1,"x"] {"k":null} .')
    expect(await behind(a, '[{ k = "{{prev.items.1}}" }, "{{prev.items.0}}"]')).toEqual([{ k: 'x' }, 1])
    expect(await behind(a, '"${prev.items[1]} {{prev.items.0}}"')).toBe('x 1')
  })

  test('runbook#41 data is never scanned again', async () => {
    expect(await behind('prev', '"{{trigger.t}} ${trigger.t}"', { triggerData: { t: '{{run.id}} ${1 + 1}' } })).toBe(
      '{{run.id}} ${1 + 1} {{run.id}} ${1 + 1}',
    )
  })

  test('runbook#41 no data is ever a template: random texts come out of every form as they went in', async () => {
    const piece = fc.constantFrom(
      '{{',
      '}}',
      '${',
      '%{',
      '}',
      '$${',
      '{{{{',
      '~}',
      'run.id',
      'prev',
      '"',
      '\\',
      '\n',
      'ü',
      '***',
    )
    const property = fc.asyncProperty(fc.array(piece, { maxLength: 8 }), async (pieces) => {
      const data = pieces.join('')
      const report = await run(
        `input i { type = string }
        locals { l = "<\${input.i}>" }
        node set s {
          name  = "v"
          value = trigger.t
        }
        node loop each { items = [trigger.t] }
        node probe body { value = "\${loop.item}|{{loop.item}}|{{prev}}" }
        node join j {}
        node probe b { value = [trigger.t, "{{trigger.t}}", "<\${trigger.t}>", "<{{input.i}}>", local.l, var.v, "{{var.v}}", prev.results[0], "\${env.E}", { "\${input.i}" = 1 }] }
        ${edges('s each body j b')}`,
        { triggerData: { t: data }, inputs: { i: data }, env: { E: data } },
      )
      const around = `<${data}>`
      const inBody = `${data}|${data}|${data}`
      expect(report.error).toBeUndefined()
      expect(output(report, 'b')).toEqual([data, data, around, around, around, data, data, inBody, data, { [data]: 1 }])
    })
    await fc.assert(property, { numRuns: 150, seed: 41 })
  })

  test('runbook#42 a missing path is nothing with a warning; an error with strict', async () => {
    const text = 'node probe a { value = ["x{{trigger.no.path}}y", "{{trigger.no}}"] }'
    const report = await run(text)
    expect(output(report, 'a')).toEqual(['xy', null])
    expect(report.warnings).toMatchObject([
      { code: 'RB501', message: 'missing path "trigger.no.path"' },
      { code: 'RB501' },
    ])
    expect(await run(text, { strict: true })).toMatchObject({ error: { code: 'expression_error' } })
    await expect(run('node probe a { value = "{{nodes.b.x}}" }')).rejects.toThrow('RB402')
  })

  test('runbook#43 text conditions split the source, not the data', async () => {
    const holds = async (value: string, condition: string) => {
      const report = await run(
        `node probe a { value = { a = ${value} } }\nnode if i { condition = ${condition} }\nnode probe t {}\nedge i t { condition = "then" }\n${edges('a i')}`,
      )
      return node(report, 'i')?.branch
    }
    expect(await holds('"x == ok"', '"{{prev.a}} == ok"')).toBe('else')
    expect(await holds('"ok"', '"{{prev.a}} == ok"')).toBe('then')
    expect(await holds('"ok"', '" ${prev.a}  != ok "')).toBe('else')
    expect(await holds('"a == a"', '"{{prev.a}}"')).toBe('then')
    expect(await holds('"false"', '"{{prev.a}}"')).toBe('else')
    expect(await holds('0', 'prev.a')).toBe('else')
    expect(await holds('null', '"{{prev.a}}"')).toBe('else')
    expect(await holds('[]', 'prev.a')).toBe('else')
    expect(await holds('{}', '"{{prev.a}}"')).toBe('else')
    expect(await holds('[0]', 'prev.a')).toBe('then')
    expect(await holds('3', 'prev.a > 2')).toBe('then')
  })

  test('runbook#44 what is no path stays; {{{{ writes {{', async () => {
    expect(await behind('1', '"{{#each x}} {{{{a}} {{ x }} {{prev..a}}"')).toBe('{{#each x}} {{a}} {{ x }} {{prev..a}}')
  })

  test('runbook#45 spaces, dashes, digits; bindings, run, self, elapsed_ms', async () => {
    const report = await run(
      `input who { default = "me" }
      node probe "my node-1" { value = { "a b" = [{ c-d = 7 }] } }
      node probe b { value = ["{{nodes.my node-1.a b.0.c-d}}", "{{ bindings.who }}", "{{run.startedAt}}", "{{run.triggeredBy}}", "{{self.name}}", "{{nodes.my node-1.status}}", "{{run.currentNodeId}}"] }
      node probe c { value = "{{elapsed_ms}}" }
      edge "my node-1" b {}
      edge b c {}`,
    )
    expect(output(report, 'b')).toEqual([7, 'me', '2026-01-01T00:00:00.000Z', 'cli', 'b', 'succeeded', 'b'])
    expect(output(report, 'c')).toEqual(expect.any(Number))
  })
})

describe('values of a run', () => {
  test('inputs, locals, environment, run', async () => {
    const report = await run(
      `input n { type = number }
      locals {
        b = local.a + 1
        a = input.n * 2
      }
      node probe x { value = [local.b, env.HOME, env.NONE, run.attempt, run.workflow, timestamp(), var.v] }`,
      { inputs: { n: '4' }, env: { HOME: '/h', NONE: undefined }, vars: { v: 'given' } },
    )
    expect(output(report, 'x')).toEqual([9, '/h', null, 1, 'test', '2026-01-01T00:00:00Z', 'given'])
  })

  test('missing, unknown and ill-typed inputs are told together', async () => {
    const text = 'input a {}\ninput b { type = number }\ninput c {\n enum = ["x"]\n}\nnode probe x {}'
    await expect(run(text, { inputs: { b: 'x', c: 'y', d: 1 } })).rejects.toThrow(
      'unknown input "d"\nmissing input "a"\ninput "b": expected number, found a string\ninput "c" is one of "x"',
    )
  })

  test('runbook#108 secrets are masked in outputs, errors and Base64', async () => {
    const secret = 's3cr3t value+/'
    const report = await run(
      `input pin {
        sensitive = true
        type = string
      }
      node probe a { value = [secret.key, "x \${secret.key} y", base64encode("user:\${secret.key}"), urlencode(secret.key), jsonencode(secret.key), input.pin] }
      node probe b { fail = "not_found" }
      node probe c { 
        value = sensitive("hidden")
        on_error = "continue"
      }
      node delay d { duration = secret.key }
      ${edges('a c d b')}`,
      { secrets: { key: secret }, inputs: { pin: 'pin-1234' } },
    )
    const text = JSON.stringify(report)
    expect(output(report, 'a')).toEqual(['***', 'x *** y', expect.stringContaining('***'), '***', '"***"', '***'])
    expect(node(report, 'a')).toMatchObject({ redacted: true })
    expect(output(report, 'c')).toBe('***')
    expect(text).not.toContain(secret)
    expect(text).not.toContain('pin-1234')
    expect(text).not.toContain(Buffer.from(secret).toString('base64').slice(0, 12))
  })
})

describe('dry run and parts of a graph', () => {
  test('runbook#117 nothing with effects runs, what depends on it is known after the run', async () => {
    const report = await run(
      `node set s {
        name = "v"
        value = 1 + 1
      }
      node remote r { value = { n = var.v } }
      node probe p { value = prev.n }
      node if i { condition = prev.n > 1 }
      node probe t {}
      node loop l { items = prev }
      node probe body { value = loop.item }
      node join j {}
      edge i t { condition = "then" }
      ${edges('s r p', 'r i', 'r l body j')}`,
      { dryRun: true },
    )
    expect(report).toMatchObject({ status: 'dry_run', exitCode: 0 })
    expect(node(report, 's')).toMatchObject({ status: 'succeeded', config: { value: 2 } })
    expect(node(report, 'r')).toMatchObject({
      status: 'simulated',
      config: { value: { n: 2 } },
      output: '(known after run)',
    })
    expect(node(report, 'p')).toMatchObject({ status: 'simulated', config: { value: '(known after run)' } })
    expect(node(report, 'body')).toMatchObject({ status: 'simulated' })
    expect(report.edges.find(({ from }) => from === 'i')).toMatchObject({ state: 'possible' })
  })

  test('runbook#118 mock, until, only', async () => {
    const text = `node probe a { fail = "not_found" }\nnode probe b { value = [prev] }\nnode probe c { fail = "conflict" }\n${edges('a b c')}`
    const mocks = { a: { x: 1 } }
    const until = await run(text, { mocks, until: 'b' })
    expect(until.nodes.map(({ id, status, mocked }) => [id, status, mocked])).toEqual([
      ['a', 'succeeded', true],
      ['b', 'succeeded', undefined],
      ['c', 'not_run', undefined],
    ])
    expect(output(await run(text, { mocks, only: 'b' }), 'b')).toEqual([{ x: 1 }])
    await expect(run(text, { only: 'b' })).rejects.toThrow('"b" needs the outputs of a')
    await expect(run(text, { until: 'z' })).rejects.toThrow('unknown node "z"')
  })

  test.each([
    ['if i { condition = false }', { result: true }, 'then'],
    ['if i { condition = true }', { branch: 'else' }, 'else'],
    ['switch i {\n expression = 1\n cases = ["then", "x"]\n}', { value: 'then', matched: true }, 'then'],
    ['switch i {\n expression = 1\n cases = ["then", "x"]\n}', { value: 'q', matched: false }, 'default'],
  ])('runbook#118 the mock of %s with %j takes branch %s', async (type, mock, branch) => {
    const other = type.startsWith('if') ? 'else' : 'default'
    const body = `node ${type}\nnode probe t {}\nnode probe o {}\nedge i t { condition = "then" }\nedge i o { condition = "${other}" }`
    const report = await run(body, { mocks: { i: mock } })
    expect(node(report, 'i')).toMatchObject({ mocked: true, branch })
    expect(node(report, branch === 'then' ? 'o' : 't')?.status).toBe('unreached')
    expect(await run(body, { mocks: { i: { x: 1 } } })).toMatchObject({ error: { code: 'config_invalid', node: 'i' } })
  })

  test('runbook#47 warnings come once, in order of the file, whatever ran first', async () => {
    const text = `node probe slow {
        ms    = 10
        value = 1
      }
      node probe first { value = "{{trigger.a}}" }
      node probe late { value = "{{trigger.b}} {{trigger.b}}" }
      node loop l { items = [1, 2, 3] }
      node probe body { value = "{{trigger.c}}" }
      ${edges('slow first', 'l body')}`
    const [one, eight] = [await run(text, { concurrency: 1 }), await run(text)]
    expect(one.warnings.map(({ message }) => message)).toEqual(
      ['a', 'b', 'c'].map((name) => `missing path "trigger.${name}"`),
    )
    expect(stable(eight)).toEqual(stable(one))
  })
})
