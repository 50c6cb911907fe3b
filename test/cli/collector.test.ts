import { execFile, execFileSync } from 'node:child_process'
import { promisify } from 'node:util'
import { buildSync } from 'esbuild'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { packageRoot } from '../../src/base/package-root.ts'

/** Fills the old generation again and again; tells how often it was collected, and what V8 was told. */
const CHURN = `
  import { PerformanceObserver, constants } from 'node:perf_hooks'
  import v8 from 'node:v8'
  import { letYoungGenerationGrow, prepareCollector } from './src/cli/collector.ts'
  let collections = 0
  new PerformanceObserver((list) => {
    collections += list.getEntries().filter(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR).length
  }).observe({ entryTypes: ['gc'] })
  const flags = []
  const { setFlagsFromString } = v8
  v8.setFlagsFromString = (flag) => {
    flags.push(flag)
    setFlagsFromString(flag)
  }
  prepareCollector()
  letYoungGenerationGrow()
  const kept = []
  let left = 150
  const churn = () => {
    for (let i = (left % 4) * 50_000, end = i + 50_000; i < end; i++) kept[i] = { i, text: 'x' + i, list: [i] }
    if (left-- > 0) setTimeout(churn)
    else setTimeout(() => console.log(JSON.stringify({ collections, flags })), 10)
  }
  churn()
`

const hasTaskset = (() => {
  try {
    return execFileSync('taskset', ['-c', '0', 'true']).length === 0
  } catch {
    return false
  }
})()

test.skipIf(!hasTaskset)('a program on one processor lives through collections of its old objects', async () => {
  const stdin = { contents: CHURN, resolveDir: packageRoot, loader: 'ts' } as const
  const { outputFiles } = buildSync({ stdin, bundle: true, platform: 'node', write: false })
  const script = outputFiles[0]?.text ?? ''
  const { stdout } = await promisify(execFile)('taskset', ['-c', '0', process.execPath, '-e', script])
  const { collections, flags } = z
    .object({ collections: z.number(), flags: z.array(z.string()) })
    .parse(JSON.parse(stdout))
  expect(flags).toContain('--no-concurrent-marking')
  expect(collections).toBeGreaterThan(2)
})
