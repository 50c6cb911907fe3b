import type { Flags } from '../command.ts'

/** What a workflow is given. Contract: runbook.md 8. */
export const INPUT_FLAGS = {
  input: { value: 'k=v', repeat: true, help: 'An input; JSON where its type is not string' },
  'input-file': { value: 'file', repeat: true, help: 'Inputs from a JSON or YAML file; --input wins' },
  'trigger-data': { value: 'data', help: 'What the trigger emits: JSON, a file, or - for standard input' },
  trigger: { value: 'id', help: 'Only this trigger fires' },
  var: { value: 'k=v', repeat: true, help: 'A variable, var.<k>' },
  secret: { value: 'name=env:NAME|file:PATH', repeat: true, help: 'A secret, secret.<name>, from a safe place' },
  env: { value: 'NAME', repeat: true, help: 'An environment variable that env.<NAME> may read' },
} as const satisfies Flags

export const FILE_ARGUMENT = { help: 'Workflow file, - for standard input' } as const

/** Which nodes take part, and what is known of them. */
export const SCOPE_FLAGS = {
  only: { value: 'id', help: 'Only this node; outputs of its ancestors from --resume, --from-failed, --mock' },
  until: { value: 'id', help: 'Only this node and its ancestors' },
  resume: { value: 'dir', help: 'Go on with the run in this directory' },
} as const satisfies Flags

/** Values of {@link INPUT_FLAGS}. */
export interface InputFlags {
  readonly input: readonly string[]
  readonly 'input-file': readonly string[]
  readonly 'trigger-data': string | undefined
  readonly trigger: string | undefined
  readonly var: readonly string[]
  readonly secret: readonly string[]
  readonly env: readonly string[]
}
