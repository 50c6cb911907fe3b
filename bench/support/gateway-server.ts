import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../../src/base/package-root.ts'
import { startServer, type RunningServer } from '../../test/support/server.ts'

const PASSWORD = 'bench bench bench'
export const PROGRAM = join(packageRoot, 'bin/mem.js')
export const SERVICES = ['--services', 'platform,gateway']

export interface Installation {
  /** Of every process over it. */
  readonly directory: string
  readonly env: Record<string, string>
  readonly key: string
  /** An admin's. */
  readonly session: string
  readonly metricsToken: string
  start(env?: Record<string, string>): Promise<RunningServer>
}

/**
 * An organization with these credentials and a key, in a directory. Everything that a call can cost is on: limits of key and
 * credentials, a budget, records, metrics.
 * @param config of `mem.yaml`
 */
export async function install(
  directory: string,
  config: string,
  credentials: readonly Record<string, unknown>[],
): Promise<Installation> {
  const file = join(directory, 'mem.yaml')
  writeFileSync(file, config)
  const env = { HOME: directory, MEM_CONFIG: file, MEM_DATA_DIR: join(directory, 'data'), MEM_PASSWORD: PASSWORD }
  const args = ['platform', 'init', '--organization', 'Bench', '--email', 'bench@example.org']
  execFileSync(process.execPath, [PROGRAM, ...args], { env: { ...process.env, ...env } })
  const start = (more: Record<string, string> = {}): Promise<RunningServer> =>
    startServer({ directory, env: { ...env, ...more }, args: SERVICES })
  const server = await start()
  const post = async (path: string, body: object, token = ''): Promise<{ token: string }> => {
    const response = await fetch(`${server.url}/rest/v1/${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...(token !== '' && { Authorization: `Bearer ${token}` }) },
      body: JSON.stringify(body),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(text)
    return JSON.parse(text)
  }
  const { token: session } = await post('platform/login', { email: 'bench@example.org', password: PASSWORD })
  const limits = { requests_per_minute: 100_000_000, max_concurrency: 10_000 }
  for (const credential of credentials) await post('llm-gateway/credentials', { ...credential, limits }, session)
  const budget = { limit_usd: '100000', window: 'month', unknown_price: 'allow' }
  const { token: key } = await post('llm-gateway/keys', { name: 'bench', limits, budget }, session)
  const { token: metricsToken } = await post('llm-gateway/metrics-token', {}, session)
  await server.stop()
  return { directory, env, key, session, metricsToken, start }
}
