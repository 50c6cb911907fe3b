import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { packageRoot } from '../../../src/base/package-root.ts'
import { SearchHost } from '../../../src/memory/search/host.ts'
import { LocalSearch } from '../../../src/memory/search/local.ts'
import { RemoteSearch } from '../../../src/memory/search/remote.ts'
import type { CellSource, SearchQuery } from '../../../src/memory/search/types.ts'
import { type FileChange, openCellSource } from './file-source.ts'

const MODEL = 'hash:default'
const query = (text: string, mode: SearchQuery['mode'] = 'keyword'): SearchQuery => ({
  text,
  mode,
  vector: 'hash',
  k: 5,
  fusionWeight: 1,
  includeCells: false,
})
const patient = (): AbortSignal => new AbortController().signal

let folder: string
let file: string
let changes: FileChange[] = []

/** What the build makes, of the sources as they are. */
beforeAll(async () => {
  folder = await mkdtemp(join(packageRoot, 'node_modules/.search-'))
  await build({
    entryPoints: {
      worker: join(packageRoot, 'src/memory/search/worker.ts'),
      source: join(packageRoot, 'test/memory/search/file-source.ts'),
    },
    outdir: folder,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    packages: 'external',
    format: 'esm',
    platform: 'node',
    target: 'node20',
  })
})
afterAll(() => rm(folder, { recursive: true }))

/** Writes a Memory of these texts, or forgets it. */
async function put(workspaceId: string, memoryId: string, ...texts: string[]): Promise<void> {
  const seq = changes.length + 1
  changes = changes.map((change) => (change.memoryId === memoryId ? { ...change, cells: [] } : change))
  changes.push({ workspaceId, memoryId, seq, cells: texts.map((text, i) => ({ cellNo: 1_000 * seq + i, text })) })
  await writeFile(file, JSON.stringify(changes))
}

const bundled = (name: string): string => pathToFileURL(join(folder, `${name}.mjs`)).href

const openRemote = (maxCells: number): RemoteSearch => {
  return new RemoteSearch({ sourceModule: bundled('source'), sourceOptions: { file }, maxCells }, bundled('worker'))
}

const openHost = (inlineCells: number, maxCells = 1_000): SearchHost => {
  const source = openCellSource({ file })
  return new SearchHost(source, new LocalSearch(source, maxCells), openRemote(maxCells), inlineCells)
}

beforeEach(async () => {
  file = join(folder, 'changes.json')
  changes = []
  await put('ws', 'mem_a', 'otters swim in rivers', 'and sleep on their backs')
  await put('ws', 'mem_b', 'herons stand in rivers')
  await put('other', 'mem_c', 'otters elsewhere')
})

describe.each([
  { place: 'this thread', inlineCells: 1_000 },
  { place: 'the worker', inlineCells: 0 },
])('in $place', ({ inlineCells }) => {
  let host: SearchHost
  beforeEach(() => {
    host = openHost(inlineCells)
  })
  afterEach(() => host.close())

  const found = async (text: string, mode?: SearchQuery['mode'], model = MODEL): Promise<string[]> =>
    (await host.search('ws', model, query(text, mode), patient())).hits.map((hit) => hit.memoryId)

  test('nothing is found of a workspace that another took the place of', async () => {
    expect(await found('river')).toEqual(['mem_a', 'mem_b'])
    const seq = changes.length + 1
    changes = [{ workspaceId: 'ws', memoryId: 'mem_z', seq, cells: [{ cellNo: 9_000, text: 'a river' }] }]
    await writeFile(file, JSON.stringify(changes))
    expect(await found('river')).toEqual(['mem_z'])
    expect(await found('otter')).toEqual([])
  })

  test('a search sees what was written before it', async () => {
    expect(await found('otter')).toEqual(['mem_a'])
    await put('ws', 'mem_d', 'an otter')
    expect(new Set(await found('otter'))).toEqual(new Set(['mem_a', 'mem_d']))
    await put('ws', 'mem_d', 'a beaver')
    expect(await found('otter')).toEqual(['mem_a'])
    await put('ws', 'mem_a')
    expect(await found('otter')).toEqual([])
    host.forget('ws')
    expect(await found('beaver')).toEqual(['mem_d'])
  })

  test('another model starts another index', async () => {
    expect(await found('rivers', 'vector')).toHaveLength(2)
    expect(await found('rivers', 'vector', 'none:')).toEqual([])
    expect(await found('rivers', 'keyword', 'none:')).toHaveLength(2)
    expect(await found('rivers', 'vector')).toHaveLength(2)
  })

  test('an aborted search ends with the reason, and the next one works', async () => {
    const reason = new DOMException('too slow', 'TimeoutError')
    await expect(host.search('ws', MODEL, query('otter'), AbortSignal.abort(reason))).rejects.toBe(reason)
    const controller = new AbortController()
    const aborted = host.search('ws', MODEL, query('otter'), controller.signal)
    controller.abort(reason)
    await expect(aborted).rejects.toBe(reason)
    expect(await found('otter')).toEqual(['mem_a'])
  })

  test('a failure of the source fails the search, and the next one works', async () => {
    const before = changes
    await put('ws', 'poison')
    await expect(found('otter')).rejects.toThrow('cannot be read')
    changes = before
    await put('ws', 'mem_d', 'a lutra')
    expect(await found('lutra')).toEqual(['mem_d'])
  })

  test('many at once are answered each', async () => {
    const words = ['otters', 'herons', 'backs', 'nothing']
    const answers = await Promise.all(words.flatMap((word) => [word, word, word]).map((word) => found(word)))
    expect(answers).toEqual([['mem_a'], ['mem_b'], ['mem_a'], []].flatMap((ids) => [ids, ids, ids]))
  })
})

test('a workspace that outgrows this thread moves to the worker and is found there', async () => {
  const source = openCellSource({ file })
  const local = new LocalSearch(source, 1_000)
  const host = new SearchHost(source, local, openRemote(1_000), 3)
  const search = async (): Promise<number> => (await host.search('ws', MODEL, query('rivers'), patient())).hits.length
  expect(await search()).toBe(2)
  expect(local.size('ws')).toBe(3)
  expect(host.sizes()).toEqual({ main: { indexes: 1, cells: 3 }, worker: { indexes: 0, cells: 0 } })
  await put('ws', 'mem_d', 'more rivers')
  expect(await search()).toBe(3)
  expect(await search()).toBe(3)
  expect(local.size('ws')).toBeUndefined()
  expect(host.sizes()).toEqual({ main: { indexes: 0, cells: 0 }, worker: { indexes: 1, cells: 4 } })
  await host.close()
})

test('filling goes on after the search that began it was aborted', async () => {
  const source = openCellSource({ file })
  let release = (): void => {}
  const gate = new Promise<void>((resolve) => (release = resolve))
  const reads: number[] = []
  const slow: CellSource = {
    ...source,
    async *changes(workspaceId, model, sinceSeq) {
      reads.push(sinceSeq)
      await gate
      yield* source.changes(workspaceId, model, sinceSeq)
    },
  }
  const local = new LocalSearch(slow, 1_000)
  const controller = new AbortController()
  const aborted = local.search('ws', MODEL, query('otter'), controller.signal)
  await expect.poll(() => reads).toEqual([0])
  controller.abort()
  release()
  await expect(aborted).rejects.toThrow('aborted')
  expect((await local.search('ws', MODEL, query('otter'), patient())).hits).toHaveLength(1)
  expect(reads).toEqual([0, 2])
})

test('the index used least recently goes when there is no room', async () => {
  const local = new LocalSearch(openCellSource({ file }), 4)
  const search = (workspaceId: string): Promise<unknown> => local.search(workspaceId, MODEL, query('otter'), patient())
  await search('ws')
  await search('other')
  expect([local.size('ws'), local.size('other')]).toEqual([3, 1])
  await search('ws')
  await put('third', 'mem_e', 'otters again')
  await search('third')
  expect([local.size('ws'), local.size('other'), local.size('third')]).toEqual([3, undefined, 1])
  await put('third', 'mem_f', ...Array.from({ length: 9 }, (_, i) => `otter ${i}`))
  await search('third')
  expect([local.size('ws'), local.size('third')]).toEqual([undefined, 10])
})

test('a worker that dies fails its searches and is replaced', async () => {
  const remote = openRemote(1_000)
  const dying = remote.search('ws', MODEL, query('otter'), patient())
  await remote.close()
  await expect(dying).rejects.toThrow('the search thread ended')
  expect((await remote.search('ws', MODEL, query('otter'), patient())).hits).toHaveLength(1)
  await remote.close()
})

test('a worker that cannot start says why', async () => {
  const remote = new RemoteSearch(
    { sourceModule: 'file:///absent.mjs', sourceOptions: {}, maxCells: 1 },
    bundled('worker'),
  )
  await expect(remote.search('ws', MODEL, query('otter'), patient())).rejects.toThrow('absent.mjs')
})
