/**
 * Moving a store: node bench/run.mjs export [memories]
 * Fills a store (100,000 Memories of 20 words with 2 versions and 2 tags each, half as many Edges), exports it with
 * `mem export`, imports that into an empty one with `mem import`, and exports again. Memory is the most the process had.
 */
import { createReadStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { spawnProgram } from '../test/support/program.ts'
import { type InProcess, openInProcess } from './support/in-process.ts'
import { cpuSeconds, machine, printTable, residentMiB, round } from './support/measure.ts'
import { textOf } from './support/words.ts'

const AT_ONCE = 200

async function fill({ service, workspace }: InProcess, memories: number): Promise<void> {
  const signal = new AbortController().signal
  const caller = () => ({ requestId: 'req_bench', startedAt: performance.now(), agentId: 'agent_bench', signal })
  const ids: string[] = []
  for (let done = 0; done < memories; done += AT_ONCE) {
    const numbers = Array.from({ length: Math.min(AT_ONCE, memories - done) }, (_, i) => done + i)
    const write = async (n: number): Promise<string> => {
      const tags = { topic: `topic ${n % 100}`, number: String(n) }
      const request = { content: textOf(n, 20), tags }
      const { memory_id: id, watermark } = await service.imprint.run(caller(), workspace, request)
      await service.edits.update(caller(), workspace, id, { content: textOf(-n, 20) }, watermark)
      return id
    }
    ids.push(...(await Promise.all(numbers.map(write))))
  }
  for (let done = 0; done < memories / 2; done += AT_ONCE) {
    const link = (n: number): Promise<unknown> =>
      service.links.link(caller(), workspace.id, {
        source_memory_id: ids[n] ?? '',
        target_memory_id: ids[(n * 7 + 1) % memories] ?? '',
        edge_type: 'references',
      })
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, memories / 2 - done) }, (_, i) => link(done + i + 1)))
  }
}

/** Runs the built program. */
async function measure(args: string[], directory: string): Promise<{ seconds: number; 'cpu s': number; MiB: number }> {
  const begin = performance.now()
  const child = spawnProgram(args, { directory })
  let output = ''
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stdout.resume()
  let most = 0
  let cpu = 0
  while (child.exitCode === null && child.signalCode === null) {
    try {
      most = Math.max(most, residentMiB(child.pid ?? 0) || 0)
      cpu = cpuSeconds(child.pid ?? 0)
    } catch {
      break
    }
    await sleep(50)
  }
  const seconds = round((performance.now() - begin) / 1000)
  while (child.exitCode === null) await sleep(10)
  if (child.exitCode !== 0) throw new Error(`mem ${args.join(' ')} ended with ${child.exitCode}: ${output}`)
  return { seconds, 'cpu s': round(cpu), MiB: most }
}

async function digest(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}

const memories = Number(process.argv[2] ?? 100_000)
const directory = mkdtempSync(join(tmpdir(), 'mem-bench-'))
const at = (name: string): string => join(directory, name)
const store = await openInProcess(at('data/mem.db'))
await fill(store, memories)
await store.close()
const rows = []
for (const [what, args] of [
  ['export', ['export', at('first.jsonl'), '--data-dir', at('data')]],
  ['import', ['import', at('first.jsonl'), '--data-dir', at('other')]],
  ['export again', ['export', at('second.jsonl'), '--data-dir', at('other')]],
  ['import again', ['import', at('second.jsonl'), '--data-dir', at('other')]],
] as const) {
  rows.push({ what, memories, 'target s': 60, ...(await measure([...args], directory)) })
}
const isEqual = (await digest(at('first.jsonl'))) === (await digest(at('second.jsonl')))
console.log(machine())
printTable(rows)
console.log(
  `${Math.round(statSync(at('first.jsonl')).size / 2 ** 20)} MiB; the second export is ${isEqual ? 'equal' : 'NOT EQUAL'}\n`,
)
rmSync(directory, { recursive: true })
