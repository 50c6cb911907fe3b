import type { NodeExecutor } from '../../registry.ts'
import type { Schema } from '../../schema.ts'

const TOOL: Schema = {
  type: 'object',
  properties: {
    name: { type: 'string', pattern: '^[A-Za-z0-9_-]{1,64}$' },
    description: { type: 'string', default: '' },
    parameters: { type: 'object', description: 'JSON Schema of the arguments' },
    url: { type: 'string', format: 'url', description: 'Called with the arguments as JSON body' },
    method: { type: 'string', enum: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] },
    headers: { type: 'object' },
  },
  required: ['name'],
}

/** Asks a language model. Contract: runbook.md 6.5. */
export const aiNode: NodeExecutor = {
  type: 'ai',
  effects: 'external',
  timeoutMs: 120_000,
  inputSchema: {
    type: 'object',
    properties: {
      provider: {
        type: 'string',
        enum: ['openai', 'anthropic', 'gemini', 'ollama', 'openai-compatible'],
        default: 'openai',
      },
      prompt: { type: 'string', minLength: 1 },
      systemPrompt: { type: 'string' },
      model: { type: 'string', minLength: 1, description: "The provider's default when absent" },
      temperature: { type: 'number', minimum: 0, maximum: 2, description: 'Not sent when absent' },
      maxTokens: { type: 'integer', minimum: 1, default: 1000 },
      apiKey: { type: 'string', minLength: 1, sensitive: true, description: "Else the provider's environment name" },
      baseUrl: { type: 'string', format: 'url', description: 'Required for openai-compatible' },
      ollamaUrl: { type: 'string', format: 'url', default: 'http://localhost:11434' },
      responseFormat: { type: 'string', enum: ['text', 'json'], default: 'text', evaluation: 'constant' },
      schema: { type: 'object', description: 'JSON Schema that the answer must match' },
      file: { type: 'string', description: 'Text or image sent with the prompt' },
      tools: { type: 'array', items: TOOL, description: 'Calls of tools without url end the node' },
      maxToolIterations: { type: 'integer', minimum: 0, maximum: 100, default: 10 },
    },
    required: ['prompt'],
  },
  // the wire formats load with the first use
  execute: async (context) => (await import('./complete.ts')).complete(context),
}
