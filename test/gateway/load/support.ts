import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Agent } from 'undici'
import { onTestFinished } from 'vitest'
import { configFor, credentialsFor } from '../../support/gateway-load/calls.ts'
import type { Target } from '../../support/gateway-load/client.ts'
import { startLoadProvider, type LoadProvider } from '../../support/gateway-load/provider.ts'
import { expectOk, initialize, startPlatform, type Place, type PlatformApi } from '../../platform/support.ts'

export interface LoadedServer {
  readonly api: PlatformApi
  readonly provider: LoadProvider
  readonly target: Target
  readonly metricsToken: string
  /** Ends it; once. */
  stop(): Promise<void>
  /** The same data, another server. */
  restart(): Promise<PlatformApi>
}

/** A server over a provider for loads, with three weighted credentials and a key. */
export async function startLoaded(place: Place, { connections = 64 } = {}): Promise<LoadedServer> {
  const provider = await startLoadProvider()
  onTestFinished(() => provider.close())
  const file = join(place.directory, 'load.yaml')
  writeFileSync(file, configFor(provider.port))
  await initialize(place)
  const start = (): Promise<PlatformApi> => startPlatform(place, { MEM_CONFIG: file })
  const api = await start()
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => (stopped ??= api.stop())
  onTestFinished(stop)
  const manage = async (path: string, body: unknown = {}) =>
    expectOk(await api.call('POST', `//rest/v1/llm-gateway/${path}`, body), 201)
  for (const credential of credentialsFor(provider.port)) await manage('credentials', credential)
  const { token: key } = await manage('keys', { name: 'load' })
  const { token: metricsToken } = await manage('metrics-token')
  const dispatcher = new Agent({ connections })
  onTestFinished(() => dispatcher.destroy())
  const target = { url: api.url, key, dispatcher, run: 'load' }
  return { api, provider, target, metricsToken, stop, restart: start }
}
