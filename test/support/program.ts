import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { packageRoot } from '../../src/base/package-root.ts'

export interface ProgramOptions {
  /** Working directory and HOME of the process. */
  directory: string
  /** Beside PATH and HOME, all of its environment. */
  env?: Record<string, string>
}

/** Starts the built program as a user would. */
export function spawnProgram(args: string[], { directory, env = {} }: ProgramOptions): ChildProcessWithoutNullStreams {
  if (!existsSync(join(packageRoot, 'dist/cli.js'))) throw new Error('dist/ is missing: npm run build')
  return spawn(process.execPath, [join(packageRoot, 'bin/mem.js'), ...args], {
    cwd: directory,
    env: { PATH: process.env['PATH'], HOME: directory, ...env },
  })
}

/** Runs the built program to its end. */
export async function runProgram(
  args: string[],
  { input = '', ...options }: ProgramOptions & { input?: string },
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = spawnProgram(args, options)
  const ended = once(child, 'close')
  child.stdin.on('error', () => undefined) // it may end before it has read all, or any of it
  child.stdin.end(input)
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  await ended
  return { code: child.exitCode ?? -1, stdout, stderr }
}
