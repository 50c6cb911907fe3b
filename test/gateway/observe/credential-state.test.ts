import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeInPlaces, expectOk, initialize, startPlatform, type PlatformApi } from '../../platform/support.ts'
import { startFakeModel } from '../../support/fake-model/index.ts'

const G = '//rest/v1/llm-gateway'

const stateOf = async ({ url }: PlatformApi, token: string): Promise<string | undefined> => {
  const scraped = await fetch(`${url}/metrics/ai-gateway`, { headers: { authorization: `Bearer ${token}` } })
  return /llm_gateway_credential_state\{[^}]*state="([a-z]+)"\} 1/.exec(await scraped.text())?.[1]
}

describeInPlaces('the state of credentials in the metrics', (place) => {
  test('gateway#102 what a test found is told at once, and by the process that comes next before any call', async () => {
    await initialize(place())
    const fake = await startFakeModel({ provider: 'openai' })
    const file = join(place().directory, 'gateway.yaml')
    writeFileSync(file, 'gateway: {allowed_hosts: ["127.0.0.1"]}\n')
    const start = () => startPlatform(place(), { MEM_CONFIG: file })
    let api = await start()
    try {
      const { token } = expectOk(await api.call('POST', `${G}/metrics-token`, {}), 201)
      const fields: Record<string, unknown> = { ...fake.credential, name: 'tested' }
      const { id } = expectOk(await api.call('POST', `${G}/credentials`, { ...fields, api_key: 'sk-wrong' }), 201)
      expect(await stateOf(api, token)).toBe('unknown')
      for (const [key, state] of [
        ['sk-wrong', 'degraded'],
        [fields['api_key'], 'healthy'],
      ]) {
        expectOk(await api.call('PUT', `${G}/credentials/${id}`, { ...fields, api_key: key }))
        expectOk(await api.call('POST', `${G}/credentials/${id}/test`, {}))
        expect(await stateOf(api, token)).toBe(state)
        await api.stop()
        api = await start()
        expect(await stateOf(api, token)).toBe(state)
        expect(expectOk(await api.call('GET', `${G}/credentials/${id}`)).health.state).toBe(state)
      }
    } finally {
      await api.stop()
      await fake.close()
    }
  })
})
