import { isMap } from '../hcl/values.ts'
import type { NodeExecutor } from '../registry.ts'

/** Emits its template: a map as it is, text as `{result}`. Contract: runbook.md 6.2. */
export const transformNode: NodeExecutor = {
  type: 'transform',
  effects: 'none',
  inputSchema: { type: 'object', properties: { template: { type: ['object', 'string'] } }, required: ['template'] },
  execute: ({ config: { template = null } }) =>
    Promise.resolve({ output: isMap(template) ? template : { result: template } }),
}
