import { describe, expect, test } from 'vitest'
import { parseWorkflow } from '../../src/runbook/parse-workflow.ts'
import { short } from './hcl/support.ts'
import { validateWorkflow } from '../../src/runbook/validate/index.ts'
import { edges, findings, found, Probe } from './support.ts'

const fileCodes = (text: string): string[] => parseWorkflow(text, 'x.hcl').diagnostics.map(short)
const probes = (...ids: string[]): string => ids.map((id) => `node probe ${id} {}`).join('\n')
const hints = (body: string): (string | undefined)[] => found(body).map(({ hint }) => hint)

describe('structure', () => {
  test('runbook#11 bare and quoted labels give the same workflow', () => {
    const names = (text: string) => parseWorkflow(text).workflow?.nodes.map(({ type, id }) => [type, id])
    expect(names('workflow w { \n node set a {} \n}')).toEqual(names('workflow "w" { \n node "set" "a" {} \n}'))
  })

  test('runbook#12 none, two workflows, stray blocks', () => {
    expect(fileCodes('')).toEqual(['RB202 1:1'])
    expect(fileCodes('workflow a {}\nworkflow b {}')).toEqual(['RB203 2:1'])
    expect(fileCodes('node x y {}\na = 1\nworkflow a {}')).toEqual(['RB201 1:1', 'RB201 2:1'])
  })

  test('runbook#13 an unknown attribute has a suggestion and its exact range', () => {
    const [diagnostic] = found('node probe a {\n  valeu = 1\n}')
    expect(diagnostic).toMatchObject({
      code: 'RB205',
      message: 'unknown attribute "valeu" on node probe "a"',
      hint: 'did you mean "value"?',
      nodeId: 'a',
    })
    expect(diagnostic?.range.toJSON()).toMatchObject({ start: { line: 3, column: 3 }, end: { line: 3, column: 8 } })
  })

  test('runbook#14 hints for what other tools write', () => {
    expect(hints('node probe a { depends_on = [] }')).toEqual(['write an edge'])
    expect(hints('node probe a { for_each = [] }')).toEqual(['use loop'])
    expect(hints('node probe a {\n headers {}\n}')).toEqual(['headers = { }'])
  })

  test('what people bring from elsewhere gets a hint, and nothing is passed over in silence', () => {
    expect(found('node probe a { retry = 3 }')).toMatchObject([{ code: 'RB205', hint: 'retry { attempts = 3 }' }])
    expect(hints('node probe a { retries = 3 }')).toEqual(['retry { attempts = 3 }'])
    expect(hints('node probe a { value = now() }')).toEqual(['timestamp() is the start of the run'])
    expect(hints(`${probes('a')}\nnode probe b { value = a.output }\nedge a b {}`)).toEqual(['write nodes.a'])
    expect(hints('node probe a { value = "{{inputs.x}}" }')).toEqual(['did you mean "input"?'])
    expect(hints('node probe a { value = true and false }')).toEqual(['the logical operator is &&'])
    expect(hints('node probe a {\n value: 1\n}')).toEqual(['write = instead of :'])
    expect(findings('node cron c { expression = "every day" }')).toEqual(['RB211 2:28'])
    expect(findings('node cron c { expression = "99 1 * * *" }')).toEqual(['RB211 2:28'])
    expect(findings('node cron c { expression = "*/5 1-4,6 1 jan MON-FRI" }')).toEqual([])
  })

  test('a time zone is one of the IANA database', () => {
    const zone = (name: string) => found(`node cron c {\n expression = "0 8 * * *"\n timezone = "${name}"\n}`)
    for (const name of ['UTC', 'Europe/Zurich', 'America/Argentina/Ushuaia', 'Etc/GMT+5'])
      expect(zone(name)).toEqual([])
    for (const name of ['Mars/Phobos', 'Europe', '+0100', 'CEST']) {
      expect(zone(name)).toMatchObject([
        { code: 'RB211', message: expect.stringContaining(`"${name}" is no time zone`) },
      ])
    }
  })

  test('what an aggregate calculates needs a field or a value, and takes one of them', () => {
    const aggregate = (more: string) => findings(`node aggregate a {\n items = [1]\n ${more}\n}`)
    for (const operation of ['sum', 'avg', 'min', 'max']) {
      expect(aggregate(`operation = "${operation}"`)).toEqual(['RB209 2:16'])
      expect(aggregate(`operation = "${operation}"\n field = "price"`)).toEqual([])
      expect(aggregate(`operation = "${operation}"\n value = item`)).toEqual([])
    }
    for (const operation of ['count', 'first', 'last']) expect(aggregate(`operation = "${operation}"`)).toEqual([])
    expect(aggregate('operation = "count"\n field = "price"\n value = item')).toEqual(['RB213 2:16'])
  })

  test('a limit of no time is none', () => {
    expect(findings('timeout = 0')).toEqual(['RB216 2:11'])
    expect(findings('timeout = "0s"')).toEqual(['RB216 2:11'])
    expect(findings('node probe a { timeout = "0ms" }')).toEqual(['RB216 2:26'])
    expect(findings('node probe a {\n timeout = 0.5\n retry { backoff = 0 }\n}')).toEqual([])
  })

  test('runbook#15 a duplicate node has both positions', () => {
    const [diagnostic] = found('node probe a {}\nnode set a {}')
    expect(diagnostic).toMatchObject({ code: 'RB207' })
    expect(diagnostic?.related?.map(({ range }) => range.start.line)).toEqual([2])
  })

  test('runbook#16 an unknown type has a suggestion, aliases are accepted', () => {
    expect(findings('node htpp a {}')).toEqual(['RB212 2:6'])
    expect(hints('node htpp a {}')).toEqual(['did you mean "http"?'])
    for (const [alias, type] of [
      ['slack', 'chat_a'],
      ['discord', 'chat_b'],
      ['teams', 'chat_c'],
      ['pgvector', 'vectordb'],
      ['tool_pgvector', 'tool_vectordb'],
      ['k8s-get', 'orch_get'],
      ['k8s_get', 'orch_get'],
    ]) {
      const { workflow } = parseWorkflow(`workflow w {\n node ${alias} a {}\n}`)
      expect(workflow?.nodes[0]).toMatchObject({ type, typeAs: alias })
    }
  })

  test('runbook#17 snake_case is the same attribute, both at once are an error', () => {
    expect(
      findings('node loop l {\n items = []\n max_iterations = 1\n maxIterations = 2\n}\nnode probe a {}\nedge l a {}'),
    ).toEqual(['RB213 5:2'])
  })

  test('runbook#18 missing, ill-typed and unlisted attributes', () => {
    expect(findings('node if a {}')).toEqual(['RB209 2:9', 'RB308 2:9', 'RB308 2:9'])
    expect(findings('node loop a {\n items = []\n concurrency = "many"\n}')).toEqual(['RB210 4:16'])
    expect(findings('node join a {\n mode = "nil"\n}')).toEqual(['RB211 3:9'])
    expect(findings('node delay a {\n duration = "5 minutes"\n}')).toEqual(['RB216 3:13'])
    expect(findings('node delay a {\n seconds = 1 / 0\n}')).toEqual(['RB410 3:16'])
  })

  test('runbook#18 what is wrong whatever a run brings', () => {
    const codes = (type: string, ...attributes: string[]) =>
      findings(`node ${type} a {\n${attributes.join('\n')}\n}`).filter((code) => /RB2(09|1[0134])/.test(code))
    expect(codes('delay')).toEqual(['RB209 2:12'])
    expect(codes('delay', 'seconds = 1', 'duration = "1s"')).toEqual(['RB213 2:12'])
    expect(codes('delay', 'seconds = 86401')).toEqual(['RB211 3:11'])
    expect(codes('set', 'name = "x"')).toEqual(['RB209 2:10'])
    expect(codes('set', 'name = "x"', 'value = null')).toEqual([])
    expect(codes('set', 'name = "x"', 'variables = {}')).toEqual(['RB213 2:10'])
    expect(codes('sort', 'items = []', 'field = null')).toEqual(['RB209 2:11'])
    expect(codes('sort', 'items = []', 'by = item')).toEqual([])
    expect(codes('chat_b', 'channel = "ops"')).toEqual(['RB209 2:13'])
    expect(codes('join', 'cancelOthers = "maybe"')).toEqual(['RB210 3:16'])
    expect(codes('if', 'condition = "maybe == no"')).toEqual([])
    expect(codes('http', 'url = null')).toEqual(['RB209 2:11'])
    expect(codes('http', 'url = "relative"')).toEqual(['RB211 3:7'])
    expect(codes('http', 'url = "http://x"', 'expectStatus = ["6xx"]')).toEqual(['RB211 4:16'])
    expect(codes('http', 'url = "http://x"', 'expectStatus = ["2xx", 404, "503", "*"]')).toEqual([])
    expect(codes('manual', 'inputs = { a = "list(" }')).toEqual(['RB211 3:10'])
    expect(codes('manual', 'inputs = { a = { type = "text" } }')).toEqual(['RB211 3:10'])
    expect(codes('code', 'code = "print(${1})"')).toEqual(['RB214 3:8'])
    expect(codes('code', 'code = "print($${1}, {{x}})"')).toEqual([])
  })

  test('runbook#19 what must be constant', () => {
    expect(findings('node join a {\n mode = input.m\n}\ninput m {}')).toEqual(['RB214 3:9'])
    expect(findings('description = var.x')).toEqual(['RB214 2:15'])
    expect(findings('node probe a {\n description = "${1 + var.x}"\n}')).toEqual(['RB214 3:16'])
  })

  test('inputs, locals and meta-arguments', () => {
    expect(findings('input a {\n type = strin\n}')).toEqual(['RB211 3:9'])
    expect(findings('input a {\n type = number\n default = "x"\n}')).toEqual(['RB210 4:12'])
    expect(findings('input a {}\ninput a {}')).toEqual(['RB208 3:7'])
    expect(findings('input "a b" {}')).toEqual(['RB215 2:7'])
    expect(findings('locals { a = 1 }\nlocals { a = 2 }')).toEqual(['RB208 3:10'])
    expect(findings('node probe "a.b" {}')).toEqual(['RB215 2:12'])
    expect(findings('node probe a { on_error = "brnch" }')).toEqual(['RB211 2:27'])
    expect(findings('node probe a {\n retry {\n attempts = 21\n }\n}')).toEqual(['RB211 4:13'])
    expect(findings('node probe a {\n retry {\n jitter = 0.1\n }\n}')).toEqual(['RB210 4:11'])
    expect(found('node probe a {\n retry {\n on = ["network", "http_statsu"]\n }\n}')).toMatchObject([
      { code: 'RB211', hint: 'did you mean "http_status"?' },
    ])
    expect(findings('timeout = "soon"')).toEqual(['RB216 2:11'])
    expect(findings('concurrency = 257')).toEqual(['RB211 2:15'])
    expect(findings('node probe {}')).toEqual(['RB204 2:1'])
    expect(findings('nodes {}')).toEqual(['RB206 2:1'])
    expect(findings('node probe a { secret = "s3cr3t" }')).toEqual(['RB219 2:25'])
  })
})

describe('graph', () => {
  test('runbook#20 edges to unknown nodes and into triggers', () => {
    expect(findings(`${probes('alpha')}\nedge alpha alpa {}`)).toEqual(['RB301 3:12'])
    expect(
      findings(`${probes('a')}\nnode manual t {}\nedge a t {}`).filter((code) => code.startsWith('RB304')),
    ).toEqual(['RB304 4:8'])
  })

  test('runbook#21 a cycle lists its path', () => {
    const [cycle] = found(`${probes('a', 'b', 'c', 'd')}\n${edges('d a b c a')}`)
    expect(cycle).toMatchObject({ code: 'RB302', message: 'cycle: a -> b -> c -> a' })
    expect(found(`${probes('a')}\nedge a a {}`)[0]).toMatchObject({ code: 'RB302', message: 'cycle: a -> a' })
  })

  test('runbook#22 edges of an if', () => {
    const body = (edge: string) =>
      `node if i { condition = true }\n${probes('x', 'y')}\nedge i x { ${edge} }\nedge i y { condition = "else" }`
    expect(findings(body(''))).toEqual(['RB305 5:1'])
    expect(findings(body('condition = "maybe"'))).toEqual(['RB308 2:9', 'RB306 5:24'])
    expect(findings(body('condition = "true"'))).toEqual([])
    expect(findings(body('condition = true'))).toEqual([])
    expect(findings(body('on = "always"'))).toEqual([])
  })

  test('runbook#23 a case without edge; a constant condition without effect', () => {
    const body =
      'node switch s {\n expression = 1\n cases = ["1", "2"]\n}\nnode probe a {}\nedge s a { condition = "1" }'
    expect(found(body).map(({ code, level, message }) => [code, level, message])).toEqual([
      ['RB308', 'warning', 'no edge for branch "2" of switch "s"'],
    ])
    expect(findings(`${probes('a', 'b')}\nedge a b { condition = "x" }`)).toEqual(['RB307 4:24'])
    expect(findings(`${probes('a', 'b')}\nedge a b { condition = "{{prev.x}} == y" }`)).toEqual([])
  })

  test('runbook#24 isolated and unreachable nodes are warnings', () => {
    expect(
      found(`${probes('a', 'b', 'c', 'd')}\nedge a b {}\nedge a d { when = false }`).map(({ code, level, nodeId }) => [
        code,
        level,
        nodeId,
      ]),
    ).toEqual([
      ['RB310', 'warning', 'c'],
      ['RB309', 'warning', 'd'],
    ])
    expect(findings(`node probe a { on_error = "continue" }\nnode probe b {}\nedge a b { on = "error" }`)).toEqual([
      'RB311 4:1',
    ])
    expect(findings(`${probes('a', 'b')}\nedge a b {}\nedge a b {}`)).toEqual(['RB303 5:1'])
    expect(findings(`node manual t {}\n${probes('a', 'b', 'c')}\n${edges('t a', 'b c')}`)).toEqual(['RB310 4:12'])
  })

  const loop = `node loop l { items = [1] }\n${probes('x', 'y')}\nnode join j {}\n${probes('z')}\n${edges('l x j z')}\n`

  test('runbook#25 an edge across a loop body', () => {
    expect(findings(`${loop}edge y x {}`)).toEqual(['RB313 10:1'])
    expect(
      findings(loop.replace('{ items = [1] }', '{\n items = [1]\n join = "j"\n}') + `edge x y {}\n${edges('z y')}`),
    ).toEqual(['RB313 14:1'])
    expect(findings('node loop l {\n items = []\n join = "x"\n}\nnode probe x {}\nedge l x {}')).toEqual(['RB314 4:9'])
  })

  test('runbook#26 references to siblings, into a body, to loop outside of one', () => {
    expect(findings(`${probes('a', 's')}\nnode probe b { value = nodes.s.output }\n${edges('a b', 'a s')}`)).toEqual([
      'RB404 4:24',
    ])
    expect(findings(`${loop}node probe q { value = nodes.x.output }\n${edges('z q', 'z y')}`)).toEqual(['RB405 10:24'])
    expect(findings(`${loop}node probe q { value = loop.item }\n${edges('z q', 'z y')}`)).toEqual(['RB406 10:24'])
    expect(findings('node loop l { items = [1] }\nnode probe x { value = loop.item }\nedge l x {}')).toEqual([])
  })

  test('types without executor, edges of error policies', () => {
    expect(findings('node tool_debug a {}')).toEqual(['RB315 2:6'])
    expect(findings('node orch_get a {\n kind = "Pod"\n name = "p"\n}')).toEqual(['RB316 2:6'])
    expect(findings('node code a { code = "1" }')).toEqual(['RB315 2:6'])
    expect(findings('node probe a { on_error = "branch" }')).toEqual(['RB312 2:12'])
    expect(findings(`${probes('a')}\nnode join j {}\nedge a j {}`)).toEqual(['RB317 3:11'])
  })
})

describe('references', () => {
  const value = (expression: string, more = ''): string[] => findings(`node probe a { value = ${expression} }\n${more}`)

  test('members that a node, the run or a loop does not have', () => {
    const body = (text: string) => `node probe a {}\nnode probe b { value = ${text} }\n${edges('a b')}`
    const at401 = (text: string) => found(body(text)).filter(({ code }) => code === 'RB401')
    expect(at401('nodes.a.body')).toMatchObject([
      { message: 'node "a" has no "body"', hint: 'what the node gave is in its "output"' },
    ])
    expect(at401('nodes["a"].ouput.x')).toMatchObject([{ hint: 'did you mean "output"?' }])
    expect(at401('[run.started, self.name]').map(({ message }) => message)).toEqual([
      'run has no "started"',
      'self has no "name"',
    ])
    expect(
      at401('[nodes.a.output.body, nodes.a.error.code, nodes.a, run.started_at, "{{nodes.a.body}}{{self.name}}"]'),
    ).toEqual([])
    expect(findings('node probe a { value = nodes.a.output }')).toContain('RB404 2:24')
  })

  test('unknown names', () => {
    expect(value('inptu.x')).toEqual(['RB401 2:24'])
    expect(value('item.x')).toEqual(['RB401 2:24'])
    expect(value('nodes.b.output')).toEqual(['RB402 2:24'])
    expect(value('nodes["b c"].output')).toEqual(['RB402 2:24'])
    expect(value('input.x')).toEqual(['RB403 2:24'])
    expect(value('local.x')).toEqual(['RB403 2:24'])
    expect(value('uper("x")')).toEqual(['RB407 2:24'])
    expect(value('upper("x", 1)')).toEqual(['RB408 2:24'])
    expect(value('env.HOME')).toEqual(['RB412 2:24'])
    expect(value('[for v in [1] : v]')).toEqual([])
    expect(value('a::b(1)')).toEqual(['RB407 2:24'])
  })

  test('without values for them, inputs, secrets and environment names are infos', () => {
    const { workflow } = parseWorkflow('workflow w {\n input a {}\n node probe x { value = [env.HOME, secret.k] }\n}')
    const registry = new Probe().registry()
    const levels = workflow && validateWorkflow(workflow, { registry }).map(({ code, level }) => [code, level])
    expect(levels).toEqual([
      ['RB602', 'info'],
      ['RB412', 'info'],
      ['RB606', 'info'],
    ])
    expect(value('secret.k')).toEqual(['RB606 2:24'])
  })

  test('in braces', () => {
    expect(value('"{{nodes.b.x}}"')).toEqual(['RB402 2:24'.replace('24', '25')])
    expect(value('"{{bindings.x}}"')).toEqual(['RB403 2:25'])
    expect(value('"{{#each x}}"')).toEqual(['RB411 2:25'])
    expect(value('"{{prev.x}} {{elapsed_ms}} {{{{x}}"')).toEqual([])
  })

  test('locals', () => {
    expect(findings('locals {\n a = local.b\n b = local.a\n c = nodes.x\n}')).toEqual(['RB409 3:2', 'RB401 5:6'])
  })
})

test('RB218: requirements of code without a version', () => {
  const body = 'node code c {\n  code = "print(1)"\n  requirements = ["requests==2.32.0", "numpy", "x>=1"]\n}'
  expect(found(body).filter(({ code }) => code === 'RB218')).toMatchObject([
    { level: 'warning', message: 'requirement "numpy" is not pinned', nodeId: 'c' },
    { message: 'requirement "x>=1" is not pinned' },
  ])
})
