import { runProgram } from '../../src/cli/program.ts'

export interface CliResult {
  code: number
  stdout: string
  stderr: string
}

interface Surroundings {
  env?: Record<string, string>
  stdin?: string | Uint8Array
  /** Whether both outputs are a terminal. */
  isTTY?: boolean
}

/** Runs a command line inside this process, without the environment of the test run. */
export async function runCli(
  argv: string[],
  { env = {}, stdin = '', isTTY = false }: Surroundings = {},
): Promise<CliResult> {
  const written = { stdout: '', stderr: '' }
  const sink = (name: 'stdout' | 'stderr') => ({ isTTY, write: (text: string) => void (written[name] += text) })
  const code = await runProgram(argv, {
    stdin: (async function* () {
      yield typeof stdin === 'string' ? Buffer.from(stdin) : stdin
    })(),
    stdout: sink('stdout'),
    stderr: sink('stderr'),
    env,
  })
  return { code, ...written }
}
