import { mapOf, toText, isMap } from '../hcl/values.ts'
import type { NodeExecutor } from '../registry.ts'

/** What a caller of the workflow is answered; the last one is the report's `response`. Contract: runbook.md 6.3. */
export const webhookResponseNode: NodeExecutor = {
  type: 'webhook_response',
  effects: 'none',
  inputSchema: {
    type: 'object',
    properties: {
      statusCode: { type: 'integer', minimum: 100, maximum: 599, default: 200 },
      contentType: { type: 'string', default: 'application/json' },
      body: { description: 'Any value' },
      headers: { type: 'object' },
    },
  },
  execute: ({ config: { statusCode = null, contentType = null, body = null, headers = null } }) => {
    const texts = Object.entries(isMap(headers) ? headers : {}).flatMap(([name, value]) => {
      const text = toText(value)
      return text === undefined ? [] : [[name, text] as const]
    })
    return Promise.resolve({ output: { statusCode, contentType, body, headers: mapOf(texts) } })
  },
}
