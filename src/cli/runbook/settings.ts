import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../config/load.ts'
import type { Io } from '../command.ts'

type RunbookSettings = Config['runbook'] & { readonly state_dir: string }

/** Section `runbook` of the configuration. Contract: runbook.md 13. @throws ConfigError */
export async function runbookSettings({ env }: Io, config: string | undefined): Promise<RunbookSettings> {
  const home = env['HOME'] ?? homedir()
  const stateDirectory = join(home, '.mem/runs')
  if (isConfigured(env, home, config)) {
    const { loadConfig } = await import('../../config/load.ts')
    const { runbook } = loadConfig({ flags: { config }, env })
    return { ...runbook, state_dir: runbook.state_dir ?? stateDirectory }
  }
  // loading the configuration takes longer than a small run: not where there is none
  return {
    concurrency: 8,
    timeout: 30 * 60_000,
    state_dir: stateDirectory,
    journal: 'on_failure',
    keep_runs: 50,
    deny_private_networks: false,
    allow_hosts: [],
    channels: {},
    code: {},
  }
}

const isConfigured = (env: Io['env'], home: string, config: string | undefined): boolean =>
  config !== undefined ||
  env['MEM_CONFIG'] !== undefined ||
  Object.keys(env).some((name) => name.startsWith('MEM_RUNBOOK_')) ||
  existsSync('mem.yaml') ||
  existsSync(join(home, '.mem/config.yaml'))
