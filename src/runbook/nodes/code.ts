import { NodeError } from '../errors.ts'
import { encodeJson, parseJson } from '../hcl/json.ts'
import type { Value } from '../hcl/values.ts'
import type { CodeRunner } from '../ports.ts'
import type { NodeExecutor } from '../registry.ts'
import { map, optionalText, present, text, texts } from './settings.ts'
import { SCHEMAS_WITHOUT_EXECUTOR } from './without-executor.ts'

const LOG_TAIL = 64 * 1024

/** Python in a job of its own, which the runner removes however it ends. Contract: runbook.md 6.7. */
export const codeNode = (runner: CodeRunner): NodeExecutor => ({
  type: 'code',
  effects: 'external',
  timeoutMs: 300_000,
  inputSchema: SCHEMAS_WITHOUT_EXECUTOR.code ?? {},
  execute: async (context) => {
    const { config, signal } = context
    const job = await runner.runJob(
      {
        code: text(config, 'code'),
        input: encodeJson(map(config, 'inputs')),
        requirements: texts(config, 'requirements'),
        ...present({
          cpu: optionalText(config, 'cpu'),
          memory: optionalText(config, 'memory'),
          image: optionalText(config, 'image'),
        }),
      },
      { signal, ...(config.stream === true && { onLog: (line) => context.log(line) }) },
    )
    const logs = job.logs.slice(-LOG_TAIL)
    const { exitCode } = job
    if (exitCode !== 0)
      throw new NodeError('job_failed', `the job ended with exit code ${exitCode}`, { exitCode, logs })
    return { output: { result: resultOf(job.output), logs, exitCode } }
  },
})

function resultOf(output: string | undefined): Value {
  if (output === undefined || output.trim() === '') return null
  try {
    return parseJson(output)
  } catch {
    throw new NodeError('data_invalid', 'the job wrote no JSON to $OUTPUT_FILE')
  }
}
