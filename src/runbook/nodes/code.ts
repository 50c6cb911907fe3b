import { NodeError } from '../errors.ts'
import { encodeJson, parseJson } from '../hcl/json.ts'
import type { Value } from '../hcl/values.ts'
import type { CodeRunner, JobResult } from '../ports.ts'
import type { NodeContext, NodeExecutor } from '../registry.ts'
import { clientError } from './client-error.ts'
import { map, present, text, texts } from './settings.ts'
import { SCHEMAS_WITHOUT_EXECUTOR } from './without-executor.ts'

const LOG_TAIL = 64 * 1024

/** Python in a job of its own, which the runner removes however it ends. Contract: runbook.md 6.7. */
export const codeNode = (runner: CodeRunner): NodeExecutor => ({
  type: 'code',
  effects: 'external',
  timeoutMs: 300_000,
  inputSchema: SCHEMAS_WITHOUT_EXECUTOR.code ?? {},
  execute: async (context) => {
    const job = await run(runner, context)
    const logs = job.logs.slice(-LOG_TAIL)
    const { exitCode, reason } = job
    if (exitCode !== 0) {
      const cause = reason === undefined || reason === 'Error' ? '' : ` (${reason})`
      throw new NodeError('job_failed', `the job ended with exit code ${exitCode}${cause}`, { exitCode, logs })
    }
    return { output: { result: resultOf(job.output), logs, exitCode } }
  },
})

async function run(runner: CodeRunner, { config, signal, timeoutMs, log }: NodeContext): Promise<JobResult> {
  const { cpu, memory, image } = config
  const job = {
    code: text(config, 'code'),
    input: encodeJson(map(config, 'inputs')),
    requirements: texts(config, 'requirements'),
    ...present({ cpu, memory, image }),
  }
  try {
    return await runner.runJob(job, {
      signal,
      ...(timeoutMs !== undefined && { timeoutMs }),
      onWarning: log,
      ...(config.stream === true && { onLog: log }),
    })
  } catch (error) {
    signal.throwIfAborted()
    throw clientError('code', error)
  }
}

function resultOf(output: string | undefined): Value {
  if (output === undefined || output.trim() === '') return null
  try {
    return parseJson(output)
  } catch {
    throw new NodeError('data_invalid', 'the job wrote no JSON to $OUTPUT_FILE')
  }
}
