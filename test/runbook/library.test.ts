import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { afterAll, beforeAll, describe, expect, expectTypeOf, test, vi } from 'vitest'
import * as library from '../../src/index.ts'
import type { NodeExecutor, OrchestratorClient, RunEvent } from '../../src/index.ts'
import { edges } from './support.ts'

const { createNodeRegistry, parseWorkflow, runWorkflow } = library

const TEXT = 'workflow "w" {\n  node set a {\n    name  = "x"\n    value = 1\n  }\n}\n'

function workflowOf(text: string) {
  const { workflow, diagnostics } = parseWorkflow(text, 'w.hcl')
  expect(diagnostics).toEqual([])
  if (!workflow) throw new Error('no workflow')
  return workflow
}

/** Emits its `value` after the given number of turns, with what it was told about its run. */
const echo: NodeExecutor = {
  type: 'echo',
  effects: 'none',
  inputSchema: {
    type: 'object',
    properties: { value: {}, turns: { type: 'integer', default: 1 } },
    required: ['value'],
  },
  execute: async ({ config, prev, run, signal, log }) => {
    for (let i = 0; i < Number(config.turns); i++) await new Promise(setImmediate)
    signal.throwIfAborted()
    log(`run ${run.id}`)
    const branch = Number(config.value) % 2 === 0 ? 'even' : 'odd'
    return { output: { value: config.value ?? null, prev, run: run.id }, branch }
  },
}

const choose: NodeExecutor = { ...echo, type: 'choose', branches: ['odd', 'even'] }

describe('the package', () => {
  test('has the names of the contract, and those of the product for the same functions', () => {
    expectTypeOf(library.createKubernetesClient).returns.toEqualTypeOf<OrchestratorClient>()
    const names = ['parseWorkflow', 'validateWorkflow', 'planWorkflow', 'renderGraph', 'evaluate', 'createNodeRegistry']
    expect(Object.keys(library)).toEqual(expect.arrayContaining([...names, 'runWorkflow', 'createKubernetesClient']))
    expect(library.parseRunbook).toBe(library.parseWorkflow)
    expect(library.validateRunbook).toBe(library.validateWorkflow)
    expect(library.runRunbook).toBe(library.runWorkflow)
  })

  test('parses, validates, plans, draws, evaluates and runs a workflow', async () => {
    const workflow = workflowOf(TEXT)
    const registry = createNodeRegistry()
    expect(library.validateWorkflow(workflow)).toEqual([])
    expect(library.planWorkflow(workflow, { registry })).toMatchObject({ nodes: [{ id: 'a', config: { value: 1 } }] })
    expect(library.renderGraph(workflow, { format: 'text' })).toBe('workflow w\na (set)\n')
    const [node] = workflow.nodes
    const value = node?.attributes.get('value')?.value
    if (!value) throw new Error('no value')
    expect(library.evaluate(value, library.constantScope())).toBe(1)
    expect(await runWorkflow(workflow, { registry })).toMatchObject({ status: 'succeeded', exitCode: 0 })
    expect(parseWorkflow('workflow "w" {').diagnostics).toMatchObject([{ code: 'RB107' }])
  })

  test('runbook#136 a custom executor runs: config, prev, branch, log; a built-in name is refused', async () => {
    const registry = createNodeRegistry({ executors: [choose] })
    expect([registry.has('choose'), registry.types().length]).toEqual([true, 21])
    expect(registry.metadata('choose')).toMatchObject({ category: 'action', effects: 'none' })
    const workflow = workflowOf(`workflow "w" {
      node choose a { value = 2 }
      node choose b { value = prev.value + 1 }
      node choose c { value = 0 }
      edge a b { condition = "even" }
      edge a c { condition = "odd" }
    }`)
    const events: RunEvent[] = []
    const report = await runWorkflow(workflow, { registry, runId: 'r1', onEvent: (event) => events.push(event) })
    expect(report.nodes.map(({ id, status, branch }) => [id, status, branch])).toEqual([
      ['a', 'succeeded', 'even'],
      ['b', 'succeeded', 'odd'],
      ['c', 'unreached', undefined],
    ])
    expect(report.nodes[1]?.output).toMatchObject({ value: 3, prev: { value: 2 }, run: 'r1' })
    expect(events.filter(({ event }) => event === 'node.log').map(({ node, message }) => [node, message])).toEqual([
      ['a', 'run r1'],
      ['b', 'run r1'],
    ])
    for (const type of ['set', 'http', 'code', 'orch_get', 'slack', 'tool_debug', 'manual']) {
      expect(() => createNodeRegistry({ executors: [{ ...echo, type }] })).toThrow(`node type "${type}" is built in`)
    }
    // attributes are checked against its schema, in the file and in the run
    expect(library.validateWorkflow(workflowOf('workflow "w" {\n node choose a {}\n}'), { registry })[0]).toMatchObject(
      {
        code: 'RB209',
      },
    )
  })

  test('runbook#136 ten parallel runs do not mix', async () => {
    const registry = createNodeRegistry({ executors: [echo] })
    const workflow = workflowOf(`workflow "w" {
      input "n" { type = number }
      locals { twice = input.n * 2 }
      node set s {
        name  = "v"
        value = input.n
      }
      node echo a {
        value = var.v
        turns = 11 - input.n
      }
      node echo b { value = "\${secret.key} \${local.twice}" }
      ${edges('s a b')}
    }`)
    const runs = Array.from({ length: 10 }, async (_, n) => {
      const events: RunEvent[] = []
      const secrets = { key: `secret-of-${n}` }
      const report = await runWorkflow(workflow, {
        registry,
        inputs: { n },
        secrets,
        runId: `run-${n}`,
        onEvent: (event) => events.push(event),
      })
      return { report, events }
    })
    for (const [n, { report, events }] of (await Promise.all(runs)).entries()) {
      expect(report.run.id).toBe(`run-${n}`)
      const outputs = report.nodes.map(({ output }) => output)
      expect(outputs).toMatchObject([
        { v: n },
        { value: n, run: `run-${n}` },
        { value: `*** ${n * 2}`, run: `run-${n}` },
      ])
      expect(new Set(events.map(({ runId }) => runId))).toEqual(new Set([`run-${n}`]))
    }
  })

  test('runbook#137 the signal aborts; an invalid workflow or input rejects; nothing is written, no signal is handled', async () => {
    const out = vi.spyOn(process.stdout, 'write')
    const err = vi.spyOn(process.stderr, 'write')
    const listeners = () => [process.listenerCount('SIGINT'), process.listenerCount('SIGTERM')]
    const before = listeners()
    const stop = new AbortController()
    const during: number[][] = []
    const waiting: NodeExecutor = {
      ...echo,
      execute: ({ signal }) => {
        during.push(listeners())
        setImmediate(() => stop.abort())
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('given up'))))
      },
    }
    const registry = createNodeRegistry({ executors: [waiting] })
    const text = `workflow "w" {\n node echo a { value = 1 }\n node set b {\n name = "x"\n value = 1\n }\n edge a b {}\n}`
    const report = await runWorkflow(workflowOf(text), { registry, signal: stop.signal })
    expect(report).toMatchObject({ status: 'cancelled', exitCode: 130 })
    expect(report.nodes.map(({ status }) => status)).toEqual(['cancelled', 'not_run'])
    expect([before, ...during, listeners()]).toEqual([before, before, before])

    const { workflow } = parseWorkflow(TEXT.replace('set', 'sett'))
    if (!workflow) throw new Error('no workflow')
    await expect(runWorkflow(workflow, { registry })).rejects.toThrow(library.InvalidWorkflowError)
    await expect(runWorkflow(workflow, { registry })).rejects.toThrow('RB212')
    await expect(runWorkflow(workflowOf(TEXT), { registry, inputs: { x: 1 } })).rejects.toThrow(library.InvalidRunError)
    await expect(runWorkflow(workflowOf(TEXT), { registry, concurrency: 0 })).rejects.toThrow('concurrency')
    await expect(runWorkflow(workflowOf(TEXT), { registry, only: 'z' })).rejects.toThrow('unknown node "z"')
    expect([out.mock.calls, err.mock.calls]).toEqual([[], []])
    vi.restoreAllMocks()
  })

  test('files are read below the directory of the workflow and what the guard allows', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'library-'))
    writeFileSync(join(directory, 'a.txt'), 'text')
    const registry = createNodeRegistry()
    const reading = parseWorkflow(
      `workflow "w" {\n node transform a { template = file("${directory}/a.txt") }\n}`,
    ).workflow
    const beside = parseWorkflow(
      'workflow "w" {\n node transform a { template = file("a.txt") }\n}',
      join(directory, 'w.hcl'),
    )
    if (!reading || !beside.workflow) throw new Error('no workflow')
    expect((await runWorkflow(reading, { registry })).error?.message).toContain('outside the directory of the workflow')
    expect((await runWorkflow(reading, { registry, guard: { allowPaths: [directory] } })).status).toBe('succeeded')
    expect((await runWorkflow(beside.workflow, { registry })).nodes[0]?.output).toEqual({ result: 'text' })
    rmSync(directory, { recursive: true })
  })
})

describe('the packed package, as a program uses it', () => {
  const root = resolve(import.meta.dirname, '../..')
  let place: string
  const node = (...args: string[]): string => execFileSync(process.execPath, args, { cwd: place, encoding: 'utf8' })
  beforeAll(() => {
    place = mkdtempSync(join(tmpdir(), 'consumer-'))
    const [{ filename = '' }] = JSON.parse(
      execFileSync('npm', ['pack', '--json', '--silent', '--ignore-scripts', '--pack-destination', place], {
        cwd: root,
        encoding: 'utf8',
      }),
    ) as [{ filename?: string }]
    mkdirSync(join(place, 'node_modules/mem'), { recursive: true })
    execFileSync('tar', ['-xzf', filename, '--strip-components=1', '-C', 'node_modules/mem'], { cwd: place })
    // what `npm install` would bring along, without asking a registry
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { dependencies: object }
    for (const name of [...Object.keys(dependencies), '@types/node', 'undici-types']) {
      mkdirSync(dirname(join(place, 'node_modules', name)), { recursive: true })
      symlinkSync(join(root, 'node_modules', name), join(place, 'node_modules', name))
    }
    writeFileSync(join(place, 'package.json'), '{ "type": "module" }')
  }, 120_000)
  afterAll(() => rmSync(place, { recursive: true, force: true }))

  test('a TypeScript program compiles under strict, declarations checked too, and runs', () => {
    writeFileSync(
      join(place, 'main.ts'),
      `import { createNodeRegistry, MemoryClient, parseWorkflow, runWorkflow, type NodeExecutor, type RunReport } from 'mem'
import { MemoryClient as Alone } from 'mem/client'

const greet: NodeExecutor = {
  type: 'greet',
  effects: 'none',
  inputSchema: { type: 'object', properties: { who: { type: 'string' } }, required: ['who'] },
  execute: async ({ config }) => ({ output: { text: \`Hello \${String(config.who)}\` } }),
}
const { workflow, diagnostics } = parseWorkflow('workflow "w" {\\n  node greet a { who = input.who }\\n  input who {}\\n}', 'w.hcl')
if (!workflow) throw new Error(diagnostics.map(({ message }) => message).join())
const registry = createNodeRegistry({ executors: [greet] })
const report: RunReport = await runWorkflow(workflow, { registry, inputs: { who: 'you' } })
console.log(report.status, JSON.stringify(report.nodes[0]?.output), MemoryClient === Alone)
`,
    )
    const options =
      '--strict --exactOptionalPropertyTypes --noUncheckedIndexedAccess --skipLibCheck false --target es2022'
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    node(tsc, ...options.split(' '), '--module', 'nodenext', '--types', 'node', 'main.ts')
    expect(node('main.js')).toBe('succeeded {"text":"Hello you"} true\n')
  }, 120_000)

  test('only the library and the client can be imported', () => {
    const load = (name: string) =>
      node('--input-type=module', '-e', `console.log(Object.keys(await import('${name}')).length > 0)`)
    expect(load('mem')).toBe('true\n')
    expect(load('mem/client')).toBe('true\n')
    expect(() => load('mem/dist/cli.js')).toThrow('ERR_PACKAGE_PATH_NOT_EXPORTED')
  })
})
