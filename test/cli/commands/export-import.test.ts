import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { writeStream } from '../../../src/cli/streams.ts'
import { createPlace, exported, within, type Place } from '../../memory/export/place.ts'
import { live, type Step } from '../../memory/export/story.ts'
import { runCli, type CliResult } from '../run-cli.ts'

const STORY: Step[] = [
  { op: 'imprint', text: 'The keeper likes rye bread.', which: 0, tag: 'topic' },
  { op: 'append', text: ' He bakes.', which: 0 },
  { op: 'workspace', text: 'second', which: 0 },
  { op: 'imprint', text: 'The lamp is lit at dusk.', which: 1, tag: 'topic' },
]

let here: Place
let there: Place
/** The workspaces of `here`. */
let first: string
let second: string
const at = (name: string): string => join(here.directory, name)
const run = (place: Place, argv: string[], stdin: string | Uint8Array = ''): Promise<CliResult> =>
  runCli(argv, { env: place.env, stdin })

beforeEach(async () => {
  here = await createPlace()
  there = await createPlace()
  ;[first = '', second = ''] = await within(here, (memory) => live(memory, STORY))
})
afterEach(async () => {
  await here.remove()
  await there.remove()
})

test('export to a file, a compressed file and standard output; import of each', async () => {
  const text = await exported(here)
  expect(await run(here, ['export', at('all.jsonl')])).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringMatching(/all.jsonl {2}2 workspaces, Memories: 2, ledger entries: 5\n$/),
  })
  expect(readFileSync(at('all.jsonl'), 'utf8')).toBe(text)
  expect(statSync(at('all.jsonl')).mode & 0o777).toBe(0o600)
  const told = await run(here, ['export', at('all.jsonl.gz'), '-o', 'json'])
  expect(JSON.parse(told.stdout)).toMatchObject({ records: { workspace: 2, memory: 2, version: 3, ledger: 5 } })
  expect(gunzipSync(readFileSync(at('all.jsonl.gz'))).toString()).toBe(text)
  expect(await run(here, ['export', '-'])).toMatchObject({ code: 0, stdout: text })
  expect(readdirSync(here.directory).filter((name) => name.includes('partial'))).toEqual([])

  const from = { file: [at('all.jsonl')], gzip: [at('all.jsonl.gz')], stdin: ['-'] }
  for (const [name, argv] of Object.entries(from)) {
    const place = await createPlace()
    const done = await run(place, ['import', ...argv, '-o', 'json'], name === 'stdin' ? text : '')
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(done.stdout)).toMatchObject({ workspaces: { imported: 2 }, records: { memory: 2, version: 3 } })
    expect(await exported(place)).toBe(text)
    expect(await run(place, ['ledger', 'verify'])).toMatchObject({ code: 0 })
    await place.remove()
  }
})

test('one workspace of several: out, and in', async () => {
  const one = await run(here, ['export', '-', '-w', first])
  expect(one.stdout).toBe(await exported(here, [first]))
  expect(one.stdout).not.toContain(second)
  expect((await run(here, ['-w', first, 'export', '-'])).stdout).toBe(one.stdout)
  const env = { ...here.env, MEM_WORKSPACE: first }
  expect((await runCli(['export', '-'], { env })).stdout).toBe(await exported(here))
  expect(await run(here, ['export', '-', '-w', 'ws_none'])).toMatchObject({ code: 8, stdout: '' })

  await run(here, ['export', at('all.jsonl')])
  expect(await run(there, ['import', at('all.jsonl'), '-w', second])).toMatchObject({ code: 0 })
  expect(await exported(there)).toBe(await exported(here, [second]))
  const unknown = await run(there, ['import', at('all.jsonl'), '-w', 'ws_none'])
  expect(unknown).toMatchObject({ code: 4, stderr: expect.stringContaining('workspace ws_none is not in it') })
})

test('a workspace that is here with other content is refused, skipped or replaced', async () => {
  await run(here, ['export', at('old.jsonl')])
  await run(there, ['import', at('old.jsonl')])
  await within(here, async ({ service, ids }) => {
    const caller = { requestId: ids('req_'), startedAt: 0, agentId: 'agent_test', signal: new AbortController().signal }
    await service.imprint.run(caller, await service.requireWorkspace(second), { content: 'Something new.' })
  })
  await run(here, ['export', at('new.jsonl')])
  const [old, current] = [await exported(there), await exported(here)]

  const refused = await run(there, ['import', at('new.jsonl')])
  expect(refused).toMatchObject({ code: 4, stdout: '' })
  expect(refused.stderr).toMatch(
    new RegExp(`workspace ${second} is here already and has other content\n.*--conflict skip`),
  )
  const older = await run(here, ['import', at('old.jsonl')])
  expect(older.stderr).toContain('has gone on since, by 1 ledger entries')
  expect(await exported(there)).toBe(old)

  const skipped = await run(there, ['import', at('new.jsonl'), '--conflict', 'skip'])
  expect(skipped).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('1 workspace unchanged, 1 workspace skipped'),
  })
  expect(await exported(there)).toBe(old)

  const dry = await run(there, ['import', at('new.jsonl'), '--conflict', 'overwrite', '--dry-run', '-o', 'json'])
  expect(JSON.parse(dry.stdout)).toMatchObject({ dry_run: true, workspaces: { overwritten: 1, unchanged: 1 } })
  expect(await exported(there)).toBe(old)

  expect(await run(there, ['import', '-', '--conflict', 'overwrite'], current)).toMatchObject({ code: 1 })
  expect(await run(there, ['import', at('new.jsonl'), '--conflict', 'overwrite'])).toMatchObject({ code: 0 })
  expect(await exported(there)).toBe(current)
})

test('a dry run makes no store', async () => {
  await run(here, ['export', at('all.jsonl')])
  const dry = await run(there, ['import', at('all.jsonl'), '--dry-run'])
  expect(dry).toMatchObject({ code: 0, stdout: expect.stringContaining('2 workspaces would be imported') })
  expect(existsSync(join(there.directory, 'data'))).toBe(false)
})

test('a file that cannot be read makes no store', async () => {
  await run(here, ['export', at('all.jsonl')])
  writeFileSync(at('cut.jsonl'), readFileSync(at('all.jsonl')).subarray(0, -100))
  writeFileSync(at('other.jsonl'), '{"a": 1}\n')
  const refusals = [[at('none.jsonl')], [at('other.jsonl')], [at('cut.jsonl'), '--conflict', 'overwrite']]
  for (const argv of refusals) expect(await run(there, ['import', ...argv])).toMatchObject({ code: 4, stdout: '' })
  expect(existsSync(join(there.directory, 'data'))).toBe(false)
})

test('memory#139 Ctrl-C while a file is written leaves none behind', async () => {
  const sink = { write: () => true }
  const io = { stdin: (async function* () {})(), stdout: sink, stderr: sink, env: {} }
  const stopped = writeStream(io, at('stopped.jsonl'), async (write) => {
    await write('one')
    process.emit('SIGINT')
    await write('two')
  })
  await expect(stopped).rejects.toMatchObject({ exitCode: 130, message: 'interrupted' })
  expect(['stopped.jsonl', 'stopped.jsonl.partial'].filter((name) => existsSync(at(name)))).toEqual([])
})

test('what cannot be read or written is told, and changes nothing', async () => {
  await run(here, ['export', at('all.jsonl')])
  await run(here, ['export', at('cut.jsonl.gz')])
  truncateSync(at('cut.jsonl.gz'), 300)
  writeFileSync(at('plain.jsonl.gz'), readFileSync(at('all.jsonl')))
  mkdirSync(at('folder'))
  const refusals: [argv: string[], code: number, message: string][] = [
    [['export', at('all.jsonl')], 4, 'exists, and nothing is overwritten'],
    [['export', at('none/all.jsonl')], 4, 'cannot write'],
    [['export', '/dev/full/x'], 4, 'cannot write'],
    [['export', at('x.jsonl'), '--data-dir', at('none')], 4, 'there is no database'],
    [['import', at('none.jsonl')], 4, 'cannot read'],
    [['import', at('folder')], 4, 'is a folder, not a file'],
    [['import', at('cut.jsonl.gz')], 4, 'is cut off'],
    [['import', at('plain.jsonl.gz')], 4, 'was not compressed'],
    [['import', at('all.jsonl'), '--conflict', 'maybe'], 1, 'maybe'],
    [['import', at('all.jsonl'), '--from', 'elsewhere'], 1, 'elsewhere'],
    [['import', at('all.jsonl'), '--from', 'mem0'], 1, 'needs one workspace'],
    [['import', at('all.jsonl'), '--from', 'mem0', '-w', 'ws_none'], 8, 'ws_none does not exist'],
    [['import', at('all.jsonl'), '--from', 'mem0', '-w', first], 4, 'neither a JSON list'],
    [['import', at('all.jsonl'), '--from', 'server-memory', '-w', first], 4, 'line 1 is no entity or relation'],
    [['import', at('none'), '--from', 'markdown', '-w', first], 4, 'no such file'],
  ]
  const before = await exported(here)
  for (const [argv, code, message] of refusals) {
    const { stderr, ...result } = await run(here, argv)
    expect([argv, result]).toEqual([argv, { code, stdout: '' }])
    expect(stderr).toContain(message)
    expect(stderr).not.toContain('fault of mem')
  }
  expect(await exported(here)).toBe(before)
})

test('an id that another workspace has is refused, and that one is left alone', async () => {
  const text = await exported(here)
  const [memoryId = ''] = /mem_[0-9A-Z]{26}/.exec(text) ?? []
  await within(there, async (memory) => {
    const [other = ''] = await live(memory, [])
    const caller = { requestId: 'req_1', startedAt: 0, agentId: 'agent_test', signal: new AbortController().signal }
    const workspace = await memory.service.requireWorkspace(other)
    await memory.service.imprint.run(caller, workspace, { content: 'Was here first.' }, { memoryId })
  })
  const before = await exported(there)
  const refused = await run(there, ['import', '-'], text)
  expect(refused).toMatchObject({ code: 4, stderr: expect.stringContaining('is there already') })
  expect(await exported(there)).toBe(before)
})

test('bodies in files come and go', async () => {
  const files = await createPlace('sqlite', () => ({ MEM_CONTENT_DRIVER: 'file' }))
  const text = await exported(here)
  expect(await run(files, ['import', '-'], text)).toMatchObject({ code: 0 })
  expect(readdirSync(join(files.directory, 'data/content')).toSorted()).toEqual([first, second].toSorted())
  expect(await run(files, ['export', '-'])).toMatchObject({ code: 0, stdout: text })
  await files.remove()
})
