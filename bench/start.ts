/**
 * How soon the program is there: node bench/run.mjs start [runs]
 * Medians: from the start of the process to the first answer of /healthz, with a new data directory and with one that is
 * there; memory 5 s after that; `mem --version` beside `node -e 0`.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { packageRoot } from '../src/base/package-root.ts'
import { freePort } from '../test/support/ports.ts'
import { spawnProgram } from '../test/support/program.ts'
import { machine, median, printTable, residentMiB, round } from './support/measure.ts'

const IDLE_MS = 5000

interface Start {
  milliseconds: number
  idleMiB: number
}

/** Resolves false at once while nothing listens. */
function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n'))
    socket.once('data', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

async function start(directory: string, idleMs: number): Promise<Start> {
  const port = await freePort()
  const begin = performance.now()
  const child = spawnProgram(['serve', '--addr', `127.0.0.1:${port}`], { directory })
  while (!(await answers(port))) await sleep(1)
  const milliseconds = performance.now() - begin
  await sleep(idleMs)
  const idleMiB = residentMiB(child.pid ?? 0)
  child.kill()
  await new Promise((ended) => child.once('exit', ended))
  return { milliseconds, idleMiB }
}

function run(args: string[]): number {
  const begin = performance.now()
  spawnSync(process.execPath, args)
  return performance.now() - begin
}

const runs = Number(process.argv[2] ?? 20)
const fresh: number[] = []
const known: number[] = []
const idle: number[] = []
for (let i = 0; i < runs; i++) {
  const directory = mkdtempSync(join(tmpdir(), 'mem-bench-'))
  fresh.push((await start(directory, 0)).milliseconds)
  const second = await start(directory, i < 3 ? IDLE_MS : 0)
  known.push(second.milliseconds)
  if (i < 3) idle.push(second.idleMiB)
  rmSync(directory, { recursive: true })
}
const version: number[] = []
const nothing: number[] = []
for (let i = 0; i < runs; i++) {
  nothing.push(run(['-e', '0']))
  version.push(run([join(packageRoot, 'bin/mem.js'), '--version']))
}
console.log(machine())
printTable([
  { measure: '/healthz after start, new data directory (ms)', median: median(fresh), target: '' },
  { measure: '/healthz after start (ms)', median: median(known), target: '300' },
  { measure: 'idle memory (MiB)', median: median(idle), target: '90' },
  { measure: '`node -e 0` (ms)', median: median(nothing), target: '' },
  { measure: '`mem --version` (ms)', median: median(version), target: '' },
  { measure: '`mem --version` / `node -e 0`', median: round(median(version) / median(nothing)), target: '1.35' },
])
