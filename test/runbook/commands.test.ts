import { mkdirSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { HELLO, useDirectory, at, write, read, mem, report } from './commands-support.ts'

useDirectory()

describe('mem validate', () => {
  test('a valid file, and the text form of an issue', async () => {
    expect(await mem(['validate', at('hello.hcl')])).toEqual({
      code: 0,
      stdout: `${at('hello.hcl')}: valid (3 nodes, 2 edges)\n`,
      stderr: '',
    })
    const file = write(
      'bad.hcl',
      'workflow "w" {\n  node http h {\n    urll = "https://example.com"\n    url = "x"\n  }\n}\n',
    )
    const { code, stdout } = await mem(['validate', file])
    expect(code).toBe(1)
    expect(stdout).toContain(
      `error[RB205]: unknown attribute "urll" on node http "h"\n  --> ${file}:3:5\n 3 |     urll = "https://example.com"\n   |     ^^^^\n   = hint: did you mean "url"?\n`,
    )
  })

  test('runbook#119 --json', async () => {
    const file = write('bad.hcl', 'workflow "w" {\n  node sett a {}\n  edge a b {}\n}\n')
    const { code, stdout } = await mem(['validate', file, '--json'])
    expect(code).toBe(1)
    const found: { issues: { code: string }[] } = JSON.parse(stdout)
    expect(found).toMatchObject({
      formatVersion: 1,
      valid: false,
      files: [file],
      summary: { errors: 2, warnings: 0 },
      requires: { inputs: [], secrets: [], env: [], services: [expect.any(String)] },
    })
    expect(found.issues.map((issue) => issue.code)).toEqual(['RB212', 'RB301'])
    expect(found.issues[0]).toMatchObject({
      level: 'error',
      range: { file, start: { line: 2, column: 8 } },
      snippet: { startLine: 2, lines: ['  node sett a {}'] },
    })
  })

  test('runbook#120 a directory, and standard input', async () => {
    mkdirSync(at('many'))
    write('many/b.wf', HELLO)
    write('many/a.hcl', HELLO)
    write('many/notes.txt', 'none')
    const { stdout } = await mem(['validate', at('many')])
    expect(stdout.match(/[ab]\.(hcl|wf)/g)).toEqual(['a.hcl', 'b.wf'])
    expect((await mem(['validate', '-'], { stdin: HELLO })).stdout).toContain('valid (3 nodes, 2 edges)')
    expect((await mem(['validate', '-'], { stdin: 'workflow {' })).code).toBe(1)
  })

  test('runbook#24 a warning: 0, with --strict 1; inputs are checked when given', async () => {
    const file = write('w.hcl', 'workflow "w" {\n node manual m {}\n node set s {\n name = "a"\n value = 1\n }\n}')
    expect((await mem(['validate', file])).code).toBe(0)
    expect((await mem(['validate', file, '--strict'])).code).toBe(1)
    const needs = write('n.hcl', HELLO.replace('default = "world"\n', '\n'))
    expect((await mem(['validate', needs])).code).toBe(0)
    expect((await mem(['validate', needs, '--var', 'x=1'])).stdout).toContain('RB602')
  })
})

describe('mem plan, graph, nodes, workflow', () => {
  const both = (name: string): string => `workflow "w" {
  node set a {
    name  = "x"
    value = "<script>"
  }
  node transform "${name}" { template = { x = var.x, k = "\${secret.k}" } }
  edge a "${name}" { when = true }
}`

  test('runbook#121 plan: order, unknowns, masks, needs', async () => {
    const file = write('p.hcl', both('b'))
    const { code, stdout } = await mem(['plan', file, '--secret', 'k=env:K'], { env: { K: 'hidden-value' } })
    expect(code).toBe(0)
    expect(stdout).toBe(`plan of workflow "w"
1. a (set) effects: none
     name = x
     value = <script>
2. b (transform) effects: none
     <- a, when true
     template = (known after run)
needs secrets: k
`)
    const json = await mem(['plan', at('hello.hcl'), '--output', 'json', '--until', 'greet'])
    expect(JSON.parse(json.stdout)).toMatchObject({
      planVersion: 1,
      nodes: [{ id: 'start' }, { id: 'greet', config: { value: 'Hello world' } }],
    })
    expect((await mem(['plan', file])).code).toBe(1)
  })

  test('runbook#122 graph: four formats, labels escaped, coloured by a report', async () => {
    const file = write('g.hcl', both('</script> "q"').replaceAll('"</script> "q""', '"</script> \\"q\\""'))
    const draw = async (...flags: string[]): Promise<string> => (await mem(['graph', file, ...flags])).stdout
    expect(await draw()).toBe('workflow w\na (set)\n  -> </script> "q"  [true]\n</script> "q" (transform)\n')
    expect(await draw('--format', 'mermaid', '--direction', 'LR')).toBe(
      'flowchart LR\n  n0["a<br/>set"]\n  n1["#60;/script#62; #34;q#34;<br/>transform"]\n  n0 -->|"true"| n1\n',
    )
    expect(await draw('--format', 'dot')).toContain('n1 [label="</script> \\"q\\"\\ntransform"]')
    const svg = await draw('--format', 'svg')
    expect(svg).toContain('&lt;/script&gt; &quot;q&quot;')
    expect(svg).not.toContain('</script>')
    await mem(['run', at('hello.hcl'), '--report', at('report.json')])
    const coloured = await mem([
      'graph',
      at('hello.hcl'),
      '--format',
      'svg',
      '--report',
      at('report.json'),
      '--out',
      at('o.svg'),
    ])
    expect(coloured).toMatchObject({ code: 0, stdout: '' })
    expect(read('o.svg')).toContain('set, succeeded')
  })

  test('runbook#123 nodes list and show', async () => {
    const { stdout } = await mem(['nodes', 'list'])
    const lines = stdout.trimEnd().split('\n')
    expect(lines).toHaveLength(36)
    expect(lines.filter((line) => line.includes('needs a client'))).toHaveLength(8)
    expect((await mem(['nodes', 'show', 'slack'])).stdout).toMatch(/^chat_a {2}Slack\n[^]*also: slack[^]*webhookUrl/)
    for (const [, type = ''] of stdout.matchAll(/^(\w+)/gm)) {
      const shown = parse((await mem(['nodes', 'show', type, '-o', 'yaml'])).stdout)
      expect(shown).toEqual(JSON.parse((await mem(['nodes', 'show', type, '-o', 'json'])).stdout))
      expect(shown).toMatchObject({ name: type, inputSchema: { type: 'object' } })
      const isDescribed = shown.sections?.length > 0 && shown.examples?.length > 0
      expect([type, isDescribed]).toEqual([type, !type.startsWith('orch_')])
    }
    expect(await mem(['nodes', 'show', 'htpp'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('did you mean "http"'),
    })
    expect(JSON.parse((await mem(['nodes', 'list', '--category', 'trigger', '-o', 'json'])).stdout).nodes).toHaveLength(
      3,
    )
  })

  test.each(['hello', 'branch', 'loop'])('workflow new --template %s writes a workflow that runs', async (template) => {
    const out = at('mine.hcl')
    expect((await mem(['workflow', 'new', 'mine', '--template', template, '--out', out])).code).toBe(0)
    expect(await mem(['validate', out, '--strict'])).toMatchObject({ code: 0 })
    expect((await report([out])).status).toBe('succeeded')
    expect((await mem(['workflow', 'new', 'mine', '--out', out])).stderr).toContain('exists')
  })

  test('workflow new asks on a terminal only', async () => {
    const asked = await mem(['workflow', 'new', '--out', at('a.hcl')], { isTTY: true, stdin: 'mine\n' })
    expect(asked.stderr).toContain('Name of the workflow')
    expect(read('a.hcl')).toContain('workflow "mine"')
    expect((await mem(['workflow', 'new', '--out', at('b.hcl')])).code).toBe(0)
    expect(read('b.hcl')).toContain('workflow "hello"')
  })
})
