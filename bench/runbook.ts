/**
 * How little a runbook costs beside what it does: npm run bench:runbook
 * Medians of 20, ratios within one run. Ends with exit code 1 beyond a bound. Contract: runbook.md 14.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packageRoot } from '../src/base/package-root.ts'
import { parseWorkflow } from '../src/runbook/parse-workflow.ts'
import { createNodeRegistry } from '../src/runbook/registry.ts'
import type { RunOptions } from '../src/runbook/run/options.ts'
import { runWorkflow } from '../src/runbook/run-workflow.ts'
import { machine, median, printTable, round } from './support/measure.ts'
import { peerPackages } from './support/peer-packages.ts'

const RUNS = 20
const directory = mkdtempSync(join(tmpdir(), 'mem-bench-'))
const modules = peerPackages('runbook', ['web-tree-sitter', '@tree-sitter-grammars/tree-sitter-hcl', 'wireit'])

interface Row {
  measure: string
  figure: number
  bound: number | ''
}
const rows: Row[] = []
const add = (measure: string, figure: number, bound: number | '' = ''): void => {
  rows.push({ measure, figure: round(figure), bound })
}

/** Median milliseconds of actions, one after the other in turns, so that what disturbs one disturbs all. */
async function compare(actions: Record<string, () => unknown>, runs = RUNS): Promise<Record<string, number>> {
  const times = Object.entries(actions).map(([name, action]) => ({ name, action, taken: [] as number[] }))
  for (let i = 0; i < runs; i++) {
    for (const { action, taken } of times) {
      const begin = performance.now()
      await action()
      taken.push(performance.now() - begin)
    }
  }
  return Object.fromEntries(times.map(({ name, taken }) => [name, median(taken)]))
}

function start(command: string, args: string[], more: Record<string, string> = {}): void {
  const env = { ...process.env, HOME: directory, ...more }
  const { status, stderr } = spawnSync(command, args, { cwd: directory, env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
}

function write(name: string, text: string): string {
  mkdirSync(join(directory, name, '..'), { recursive: true })
  writeFileSync(join(directory, name), text)
  return join(directory, name)
}

async function coldStart(): Promise<void> {
  const hello = write(
    'hello.hcl',
    'workflow "hello" {\n  node manual start {}\n  node set greet {\n    name  = "greeting"\n    value = "Hello"\n  }\n  edge start greet {}\n}\n',
  )
  const mem = (...args: string[]) => start(process.execPath, [join(packageRoot, 'bin/mem.js'), ...args])
  const { nothing = NaN, ...ours } = await compare({
    nothing: () => start(process.execPath, ['-e', '0']),
    'mem run hello.hcl': () => mem('run', hello),
    'mem validate hello.hcl': () => mem('validate', hello),
  })
  add('`node -e 0` (ms)', nothing)
  for (const [name, taken] of Object.entries(ours)) add(`\`${name}\` / \`node -e 0\``, taken / nothing, 1.6)

  const steps = Array.from({ length: 10 }, (_, i) => `s${i}`)
  const ten = write('ten.hcl', chain(10))
  const scripts = Object.fromEntries(steps.map((name) => [name, 'wireit']))
  const wireit = Object.fromEntries(
    steps.map((name, i) => [name, { command: ':', ...(i > 0 && { dependencies: [`s${i - 1}`] }) }]),
  )
  write('package.json', JSON.stringify({ name: 'ten', scripts, wireit }))
  const tasks = await compare({
    ours: () => mem('run', ten),
    // its own program, without npm in front
    wireit: () =>
      start(process.execPath, [join(modules, 'wireit/bin/wireit.js')], {
        npm_lifecycle_event: 's9',
        npm_package_json: join(directory, 'package.json'),
      }),
  })
  add('ten nodes in a row: `mem run` (ms)', tasks['ours'] ?? NaN)
  add('ten empty scripts in a row: wireit (ms)', tasks['wireit'] ?? NaN)
}

/** A file as people write them, of so many lines. */
function fileOfLines(lines: number): string {
  const node = (i: number): string => `  node http "call ${i}" {
    description = "asks number ${i}"
    url         = "https://api.example.com/v1/\${urlencode(input.who)}/${i}"
    method      = "POST"
    headers     = { Accept = "application/json", "X-Number" = ${i} }
    body        = { name = upper(input.who), list = [for x in range(${i}) : x * 2 if x > 1] }
    timeout     = "${(i % 30) + 1}s"
    retry {
      attempts = 3
      backoff  = "2s"
    }
  }
`
  const head = 'workflow "long" {\n  input "who" {\n    default = "world"\n  }\n'
  return `${head}${Array.from({ length: Math.floor((lines - 5) / 12) }, (_, i) => node(i)).join('')}}\n`
}

interface TreeSitter {
  Parser: { new (): { setLanguage(language: unknown): void; parse(text: string): unknown }; init(): Promise<void> }
  Language: { load(path: string): Promise<unknown> }
}

async function parsing(): Promise<void> {
  const text = fileOfLines(2000)
  const { Parser, Language }: TreeSitter = await import(
    pathToFileURL(join(modules, 'web-tree-sitter/web-tree-sitter.js')).href
  )
  await Parser.init()
  const treeSitter = new Parser()
  treeSitter.setLanguage(
    await Language.load(join(modules, '@tree-sitter-grammars/tree-sitter-hcl/tree-sitter-hcl.wasm')),
  )
  const hcl2Parser: { parseToObject(text: string): unknown } = createRequire(import.meta.url)('hcl2-parser')
  const parse = {
    ours: () => {
      const { diagnostics } = parseWorkflow(text)
      if (diagnostics.length > 0) throw new Error(diagnostics[0]?.message)
    },
    'web-tree-sitter, HCL grammar': () => treeSitter.parse(text),
    'hcl2-parser': () => hcl2Parser.parseToObject(text),
  }
  await compare(parse) // warm
  for (const [name, taken] of Object.entries(await compare(parse))) {
    add(`parse 2,000 lines (${Math.round(text.length / 1024)} kB): ${name} (ms)`, taken, name === 'ours' ? 15 : '')
  }
}

function chain(nodes: number): string {
  const body = Array.from({ length: nodes }, (_, i) => `  node set n${i} {\n    name  = "v"\n    value = ${i}\n  }\n`)
  const edges = Array.from({ length: nodes - 1 }, (_, i) => `  edge n${i} n${i + 1} {}\n`)
  return `workflow "chain" {\n${body.join('')}${edges.join('')}}\n`
}

async function run(text: string, options: Partial<RunOptions> = {}): Promise<void> {
  const { workflow, diagnostics } = parseWorkflow(text)
  if (!workflow) throw new Error(diagnostics[0]?.message)
  const report = await runWorkflow(workflow, { registry: createNodeRegistry(), ...options })
  if (report.status !== 'succeeded') throw new Error(report.error?.message)
}

async function chains(): Promise<void> {
  const [short, long] = [chain(1000), chain(10_000)].map((text) => parseWorkflow(text).workflow)
  if (!short || !long) throw new Error('the chains are no workflows')
  const registry = createNodeRegistry()
  const actions = { short: () => runWorkflow(short, { registry }), long: () => runWorkflow(long, { registry }) }
  await compare(actions, 3)
  const taken = await compare(actions)
  add('chain of 1,000 `set` nodes (µs a node)', taken['short'] ?? NaN, 50)
  add('chain of 10,000 / chain of 1,000', (taken['long'] ?? NaN) / (taken['short'] ?? NaN), 12)
}

async function items(): Promise<void> {
  const listOf = (length: number): object[] =>
    Array.from({ length }, (_, i) => ({ id: (i * 7919) % length, group: `g${i % 10}`, amount: i % 97 }))
  const [few, many] = [listOf(10_000), listOf(100_000)]
  const nodes = {
    filter: ['items = input.items\ncondition = item.amount > 50', 12],
    sort: ['items = input.items\nfield = "id"', 15],
    aggregate: ['items = input.items\noperation = "sum"\nfield = "amount"', 12],
  } as const
  for (const [type, [attributes, bound]] of Object.entries(nodes)) {
    const text = `workflow "w" {\n  input "items" { type = any }\n  node ${type} n {\n${attributes}\n}\n}`
    const actions = {
      few: () => run(text, { inputs: { items: few } as never }),
      many: () => run(text, { inputs: { items: many } as never }),
    }
    await compare(actions, 3)
    const taken = await compare(actions, 10)
    add(`${type} of 100,000 items (ms)`, taken['many'] ?? NaN)
    add(`${type} of 100,000 / of 10,000`, (taken['many'] ?? NaN) / (taken['few'] ?? NaN), bound)
  }
}

async function hostile(): Promise<void> {
  const megabyte = 1024 * 1024
  const texts = {
    'a megabyte of `[`': '['.repeat(megabyte),
    'a megabyte of `${`': `a = "${'${'.repeat(megabyte / 2)}`,
    'a megabyte of open string': `a = "${'x'.repeat(megabyte)}`,
    '100,000 `+`': `a = ${'1 + '.repeat(100_000)}1`,
  }
  for (const [name, text] of Object.entries(texts)) {
    const taken = await compare({ parse: () => parseWorkflow(text) }, 3)
    add(`${name} (ms)`, taken['parse'] ?? NaN, 1000)
  }
}

console.log(machine())
await coldStart()
await parsing()
await chains()
await items()
await hostile()
printTable(rows.map((row) => ({ ...row })))
rmSync(directory, { recursive: true })
const beyond = rows.filter(({ figure, bound }) => bound !== '' && !(figure <= bound))
for (const { measure, figure, bound } of beyond) console.error(`beyond its bound: ${measure}: ${figure} > ${bound}`)
process.exitCode = beyond.length > 0 ? 1 : 0
