import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './ports.ts'
import { spawnProgram } from './program.ts'

export interface RunningServer {
  /** `http://127.0.0.1:<port>` */
  url: string
  pid: number
  /** Working directory and HOME of the server. */
  directory: string
  dataDir: string
  /** All that it has printed so far, both streams. */
  output(): string
  /** SIGTERM; gives the exit code. */
  stop(): Promise<number | null>
  /** SIGKILL. */
  kill(): Promise<void>
}

export interface ServerOptions {
  args?: string[]
  env?: Record<string, string>
  /** Of an earlier server, to start over its data; who names one removes it. Without: a new one, gone with the server. */
  directory?: string
}

const READY_WITHIN_MS = 20_000

/** Starts the built `mem serve` on a free port and waits until it answers. */
export async function startServer({
  args = [],
  env = {},
  directory: given,
}: ServerOptions = {}): Promise<RunningServer> {
  const directory = given ?? mkdtempSync(join(tmpdir(), 'mem-test-server-'))
  const dataDir = join(directory, 'data')
  const port = await freePort()
  const flags = ['--addr', `127.0.0.1:${port}`, '--data-dir', dataDir]
  const child = spawnProgram(['serve', ...flags, ...args], { directory, env })
  const killWithUs = (): boolean => child.kill('SIGKILL')
  process.once('exit', killWithUs)
  let output = ''
  const collect = (chunk: Buffer): void => void (output += chunk.toString())
  child.stdout.on('data', collect)
  child.stderr.on('data', collect)
  const ended = once(child, 'close')

  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal)
    await ended
    process.off('exit', killWithUs)
    if (given === undefined) rmSync(directory, { recursive: true, force: true })
    return child.exitCode
  }
  const server: RunningServer = {
    url: `http://127.0.0.1:${port}`,
    pid: child.pid ?? 0,
    directory,
    dataDir,
    output: () => output,
    stop: () => end('SIGTERM'),
    kill: async () => void (await end('SIGKILL')),
  }

  for (let waited = 0; !(await answers(server.url)); waited += 20) {
    if (child.exitCode !== null || waited > READY_WITHIN_MS) {
      await server.kill()
      throw new Error(`mem serve did not start (exit ${child.exitCode}):\n${output}`)
    }
    await sleep(20)
  }
  return server
}

/** Any answer will do: with a key configured, `/healthz` is 401. */
async function answers(url: string): Promise<boolean> {
  try {
    await (await fetch(`${url}/healthz`)).arrayBuffer()
    return true
  } catch {
    return false
  }
}
