import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Dispatcher, Pool } from 'undici'
import type { Installation } from './gateway-server.ts'

/** The gateway has the first core; load and provider the second. */
const GATEWAY_CORE = '0'
const LOAD_CORE = '1'
const READY_WITHIN_MS = 10_000

/** A file of the driver's folder. */
export function driverFile(name: string): string {
  const file = join(process.env['MEM_GATEWAY_BENCH'] ?? '', name)
  if (!existsSync(file)) throw new Error('name the folder of the driver in MEM_GATEWAY_BENCH')
  return file
}

/** The driver's provider and the gateway, each on its core; this process, which makes the load, beside the provider. */
export async function startPinned({ start }: Installation, port: number) {
  pin(process.pid, LOAD_CORE)
  const provider = await startDriverProgram('mock-upstream.mjs', [], { port })
  const server = await start()
  pin(server.pid, GATEWAY_CORE)
  const stop = async (): Promise<void> => {
    await server.stop()
    provider.kill()
  }
  return { server, stop }
}

/** All threads of a process. */
function pin(pid: number, core: string): void {
  execFileSync('taskset', ['-acp', core, String(pid)], { stdio: 'ignore' })
}

/** A program of the driver's, on its core, once it answers. */
export async function startDriverProgram(
  name: string,
  args: readonly string[],
  { port, onGatewayCore = false, env = {} }: { port: number; onGatewayCore?: boolean; env?: Record<string, string> },
): Promise<ChildProcess> {
  const command = [onGatewayCore ? GATEWAY_CORE : LOAD_CORE, process.execPath, driverFile(name), ...args]
  const child = spawn('taskset', ['-c', ...command, '--port', String(port)], {
    stdio: 'ignore',
    env: { ...process.env, ...env },
  })
  process.once('exit', () => child.kill())
  for (let waited = 0; !(await answers(port)); waited += 20) {
    if (waited > READY_WITHIN_MS) throw new Error(`${name} does not answer on port ${port}`)
    await sleep(20)
  }
  return child
}

async function answers(port: number): Promise<boolean> {
  try {
    await fetch(`http://127.0.0.1:${port}/v1/models`).then((response) => response.text())
    return true
  } catch {
    return false
  }
}

export interface Ask {
  readonly path: string
  readonly headers: Record<string, string>
  readonly body: string
}

/** Connections of a client to one address. */
export const connectionsTo = (port: number, connections: number): Pool =>
  new Pool(`http://127.0.0.1:${port}`, { connections, pipelining: 1 })

/** One call, read to its end. */
export async function ask(pool: Dispatcher, call: Ask): Promise<void> {
  const { body } = await answerTo(pool, call)
  await body.dump({ limit: Infinity })
}

/** One streamed call, read to its end. @returns milliseconds until it told `first` */
export async function askStream(pool: Dispatcher, call: Ask, first: string): Promise<number> {
  const begin = performance.now()
  const { body } = await answerTo(pool, call)
  let told = NaN
  for await (const chunk of body) if (Number.isNaN(told) && chunk.includes(first)) told = performance.now() - begin
  if (Number.isNaN(told)) throw new Error(`a stream of ${call.path} did not tell ${first}`)
  return told
}

async function answerTo(pool: Dispatcher, { path, headers, body }: Ask): Promise<Dispatcher.ResponseData> {
  const sent = { 'content-type': 'application/json', ...headers }
  const answer = await pool.request({ path, method: 'POST', headers: sent, body })
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode}: ${await answer.body.text()}`)
  return answer
}
