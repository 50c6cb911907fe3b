import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package-root.ts'
import { tourOf } from '../support/documents.ts'
import { freePort } from '../support/ports.ts'

/** Runs a script of bash to its end; what it started and left goes with it. */
async function runScript(
  script: string,
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<{ code: unknown; output: string }> {
  const bash = spawn('bash', ['-euo', 'pipefail', '-c', `exec 2>&1\n${script}`], { cwd, env, detached: true })
  const endAll = (): void => {
    try {
      process.kill(-(bash.pid ?? 0), 'SIGKILL')
    } catch {
      // Nobody is left.
    }
  }
  process.once('exit', endAll)
  const output = text(bash.stdout)
  const [code] = await once(bash, 'exit')
  endAll()
  process.off('exit', endAll)
  return { code, output: await output }
}

test(
  'the tour of the kernel runs as written: killed twice, each letter is sent once',
  { timeout: 240_000 },
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'mem-tour-kernel-'))
    const [server, desk, model] = [await freePort(), await freePort(), await freePort()]
    const onOwnPorts = (given: string): string =>
      given.replaceAll('7777', `${server}`).replaceAll('7801', `${desk}`).replaceAll('7802', `${model}`)
    try {
      symlinkSync(join(packageRoot, 'bin'), join(directory, 'bin'))
      mkdirSync(join(directory, 'docs/tour'), { recursive: true })
      const parts = join(packageRoot, 'docs/tour')
      for (const name of readdirSync(parts)) {
        writeFileSync(join(directory, 'docs/tour', name), onOwnPorts(readFileSync(join(parts, name), 'utf8')))
      }
      const address = `127.0.0.1:${server}`
      const env = {
        PATH: process.env['PATH'],
        HOME: directory,
        MEM_ADDR: address,
        MEM_ENDPOINT: `http://${address}`,
      }
      const { code, output } = await runScript(onOwnPorts(tourOf('docs/tour-of-the-kernel.md')), directory, env)
      expect([code, output]).toEqual([0, expect.stringContaining('ambiguous')])
      const letters = readFileSync(join(directory, 'mem-tour/letters.jsonl'), 'utf8').trim().split('\n')
      expect(letters.map((line) => JSON.parse(line))).toEqual([
        { key: expect.any(String), to: 'Pia', text: 'Wish Pia a good night. Ask how her cat is.' },
        { key: expect.any(String), to: 'Ben', text: 'Thank Ben' },
      ])
      expect(output.match(/ completed {2}agent:ana /g)).toHaveLength(2)
      expect(output).toMatch(/action\.succeeded/)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  },
)
