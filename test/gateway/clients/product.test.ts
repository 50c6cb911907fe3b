import { expect, test } from 'vitest'
import { createPostgresDatabase } from '../../support/postgres.ts'
import { startMemoryApi } from '../../support/memory-api.ts'
import { output, run } from '../../runbook/support.ts'
import { attributes } from '../../runbook/nodes/recorder.ts'
import { describeGateway } from './support.ts'

describeGateway('the product over the gateway', (gateway) => {
  test.each(['openai', 'gemini', 'bedrock'] as const)('gateway#112 memory embeds by %s', async (kind) => {
    const { base, key, api } = gateway()
    const { dialect } = api.place
    const postgres = dialect === 'postgres' ? await createPostgresDatabase() : undefined
    const memory = await startMemoryApi({
      dialect,
      ...(postgres && { postgresUrl: postgres.url }),
      file: `embedding: {model: "openai:embed-${kind}", base_url: "${base}/v1", api_key: "${key}", inline_timeout: 10s, timeout: 10s}\n`,
    })
    try {
      const ws = await memory.workspace()
      const near = await memory.imprint(ws, 'the red fox sleeps in the den')
      await memory.imprint(ws, 'invoices are due in thirty days')
      const { body } = await memory.call('POST', `/workspaces/${ws}/recall`, {
        query: 'where sleeps the fox',
        mode: 'vector',
        k: 1,
      })
      expect(body).toMatchObject({ results: [{ memory_id: near }] })
    } finally {
      await memory.stop()
      await postgres?.drop()
    }
    expect(gateway().received(kind).length).toBeGreaterThan(0)
  })

  test.each(['openai', 'anthropic', 'mistral'] as const)('gateway#112 a runbook asks %s', async (kind) => {
    const { base, key } = gateway()
    const settings = {
      provider: 'openai-compatible',
      baseUrl: `${base}/v1`,
      apiKey: key,
      model: `via-${kind}`,
      maxTokens: 200,
    }
    const ask = async (values: Record<string, unknown>): Promise<unknown> =>
      output(await run(`node ai n {\n${attributes({ ...settings, ...values })}\n}`), 'n')
    expect(await ask({ prompt: 'Hello there' })).toMatchObject({
      response: 'You said: Hello there',
      finishReason: 'stop',
      usage: { outputTokens: 6 },
    })
    const schema = {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    }
    expect(await ask({ prompt: 'Which city? As JSON.', schema })).toMatchObject({ json: { city: 'text' } })
  })
})
