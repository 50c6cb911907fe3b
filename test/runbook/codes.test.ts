import { readdirSync, readFileSync, mkdtempSync, writeFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { runCli } from '../cli/run-cli.ts'

const directory = mkdtempSync(join(tmpdir(), 'mem-codes-'))
afterAll(() => rmSync(directory, { recursive: true }))

const w = (body: string): string => `workflow "w" {\n${body}\n}\n`
const a = 'node transform a { template = {} }'
const b = 'node transform b { template = {} }'
const loop = 'node loop l { items = [1] }\nnode join j {}'

/** A file for each code that `validate` can give, and where it is found: line:column. */
const FILES: Readonly<Record<string, [text: string | Buffer, at: string]>> = {
  RB101: [Buffer.from([...Buffer.from('workflow "w" {\n# '), 0xff, 0x0a, 0x7d]), '2:3'],
  RB102: [w('description = @'), '2:15'],
  RB103: [w('description = "open'), '2:15'],
  RB104: [w('description = <<X\nopen'), '2:15'],
  RB105: ['workflow "w" {\n  description = "${1', '2:18'],
  RB106: [w('description = "\\q"'), '2:16'],
  RB107: [w('node transform a { template = [1, 2 }'), '2:31'],
  RB108: [w('timeout = 1\ntimeout = 2'), '3:1'],
  RB109: [w('timeout'), '2:8'],
  RB110: [w('node delay a { seconds = 1, seconds = 2 }'), '2:27'],
  RB111: [w('timeout = *'), '2:11'],
  RB112: [w('timeout = 1e999'), '2:11'],
  RB113: [w(`node transform a { template = ${'['.repeat(300)} }`), '2:230'],
  RB114: [w(`# ${'x'.repeat(4 * 1024 * 1024)}`), '1:1'],
  RB115: [w('description = "%{ endif }"'), '2:16'],
  RB116: [w('node transform "a${1}" {}'), '2:16'],
  RB201: ['a = 1\nworkflow "w" {}\n', '1:1'],
  RB202: ['', '1:1'],
  RB203: ['workflow "w" {}\nworkflow "v" {}\n', '2:1'],
  RB204: [w('node a {}'), '2:1'],
  RB205: [w('node delay a {\n  second = 1\n}'), '3:3'],
  RB206: [w('nodes {}'), '2:1'],
  RB207: [w(`${a}\n${a}`), '3:16'],
  RB208: [w('input x {}\ninput x {}'), '3:7'],
  RB209: [w('node http a {}'), '2:11'],
  RB210: [w('node loop a {\n items = []\n concurrency = "many"\n}'), '4:16'],
  RB211: [w('node join a { mode = "nil" }'), '2:22'],
  RB212: [w('node htpp a {}'), '2:6'],
  RB213: [w('node loop a {\n items = []\n max_iterations = 1\n maxIterations = 2\n}'), '5:2'],
  RB214: [w('description = run.id'), '2:15'],
  RB215: [w('node transform "a.b" { template = {} }'), '2:16'],
  RB216: [w('timeout = "soon"'), '2:11'],
  RB218: [w('node code a {\n code = "1"\n requirements = ["x"]\n}'), '4:18'],
  RB219: [w('node http a {\n url = "https://example.com"\n auth = { bearer = "abcdef" }\n}'), '4:9'],
  RB301: [w(`${a}\nedge a c {}`), '3:8'],
  RB302: [w(`${a}\n${b}\nedge a b {}\nedge b a {}`), '5:1'],
  RB303: [w(`${a}\n${b}\nedge a b {}\nedge a b {}`), '5:1'],
  RB304: [w(`${a}\nnode manual m {}\nedge a m {}`), '4:8'],
  RB305: [w(`node if i { condition = true }\n${a}\nedge i a {}`), '4:1'],
  RB306: [w(`node if i { condition = true }\n${a}\nedge i a { condition = "maybe" }`), '4:24'],
  RB307: [w(`${a}\n${b}\nedge a b { condition = "x" }`), '4:24'],
  RB308: [w(`node switch s {\n expression = 1\n cases = ["1", "2"]\n}\n${a}\nedge s a { condition = "1" }`), '2:13'],
  RB309: [w(`${a}\n${b}\nedge a b { when = false }`), '3:16'],
  RB310: [w(`node manual m {}\n${a}`), '3:16'],
  RB311: [w(`node transform a {\n template = {}\n on_error = "continue"\n}\n${b}\nedge a b { on = "error" }`), '7:1'],
  RB312: [w('node transform a {\n template = {}\n on_error = "branch"\n}'), '2:16'],
  RB313: [w(`${loop}\n${a}\n${b}\nedge l a {}\nedge a j {}\nedge b a {}`), '8:1'],
  RB314: [w(`node loop l {\n items = []\n join = "a"\n}\n${a}\nedge l a {}`), '4:9'],
  RB315: [w('node tool_debug a {}'), '2:6'],
  RB316: [w('node orch_get a {\n kind = "Pod"\n name = "p"\n}'), '2:6'],
  RB317: [w(`${a}\nnode join j {}\nedge a j {}`), '3:11'],
  RB401: [w('node transform a { template = { x = inptu.x } }'), '2:37'],
  RB402: [w('node transform a { template = { x = nodes.c.output } }'), '2:37'],
  RB403: [w('node transform a { template = { x = input.x } }'), '2:37'],
  RB404: [w(`${a}\nnode transform c { template = { x = nodes.a.output } }`), '3:37'],
  RB405: [
    w(`${loop}\n${a}\nnode transform c { template = { x = nodes.a.output } }\nedge l a {}\nedge a j {}\nedge j c {}`),
    '5:37',
  ],
  RB406: [w('node transform a { template = { x = loop.item } }'), '2:37'],
  RB407: [w('node transform a { template = { x = uper("x") } }'), '2:37'],
  RB408: [w('node transform a { template = { x = upper() } }'), '2:37'],
  RB409: [w('locals {\n x = local.y\n y = local.x\n}'), '3:2'],
  RB410: [w('node delay a { seconds = 1 / 0 }'), '2:30'],
  RB411: [w('node transform a { template = "{{#each x}}" }'), '2:32'],
  RB412: [w('node transform a { template = { x = env.HOME } }'), '2:37'],
  RB602: [w('input x {}'), '2:7'],
  RB606: [w('node transform a { template = { x = secret.k } }'), '2:37'],
}

const LEVELS: Readonly<Record<string, string>> = Object.fromEntries([
  ...['RB218', 'RB219', 'RB303', 'RB307', 'RB308', 'RB309', 'RB310', 'RB311', 'RB315', 'RB316', 'RB411'].map((code) => [
    code,
    'warning',
  ]),
  ...['RB317', 'RB412', 'RB602', 'RB606'].map((code) => [code, 'info']),
])

test.each(Object.keys(FILES))('runbook#119 %s: code, level, place, snippet', async (code) => {
  const [text = '', at] = FILES[code] ?? []
  const file = join(directory, `${code}.hcl`)
  writeFileSync(file, text)
  const { stdout, code: exitCode } = await runCli(['validate', '--json', file], { env: { HOME: directory } })
  const { issues }: { issues: Issue[] } = JSON.parse(stdout)
  const issue = issues.find((each) => each.code === code)
  const { start } = issue?.range ?? { start: undefined }
  expect([code, start && `${start.line}:${start.column}`, issues.map((each) => each.code)]).toEqual([
    code,
    at,
    expect.anything(),
  ])
  const level = LEVELS[code] ?? 'error'
  expect(issue).toMatchObject({ level, range: { file }, snippet: { startLine: start?.line } })
  expect(issue?.snippet.lines.length).toBeGreaterThan(0)
  expect(exitCode).toBe(issues.some((each) => each.level === 'error') ? 1 : 0)
})

interface Issue {
  code: string
  level: string
  range: { start: { line: number; column: number } }
  snippet: { lines: string[] }
}

const sources = readdirSync(join(packageRoot, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) =>
  /^(runbook|cli)\/.*\.ts$/.test(name),
)
const used = new Set(
  sources.flatMap((name) => readFileSync(join(packageRoot, 'src', name), 'utf8').match(/\bRB\d{3}\b/g) ?? []),
)
const pages = readFileSync(join(packageRoot, 'docs/diagnostics.md'), 'utf8')

test('docs/diagnostics.md has every code, with a cause and a cure', () => {
  const rows = [...pages.matchAll(/^\| (RB\d{3}) *\| ([^|]{10,}) \| ([^|]{5,}) \|$/gm)].map(([, code]) => code)
  expect(rows).toEqual([...used].toSorted())
  expect(Object.keys(FILES).filter((code) => !used.has(code))).toEqual([])
})
