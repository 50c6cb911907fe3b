import { loadConfig } from '../../config/load.ts'
import { checkStart } from '../../config/start-matrix.ts'
import { examine } from '../checks.ts'
import { defineCommand } from '../command.ts'
import { CliError, EXIT } from '../exit.ts'
import type { Finding } from '../finding.ts'
import type { Row } from '../output.ts'
import { CONFIG_FLAG, DATA_DIR_FLAG } from '../server-flags.ts'

export const doctor = defineCommand({
  flags: { ...CONFIG_FLAG, ...DATA_DIR_FLAG },
  notes:
    'Tries the configuration, the data directory, the stores, the platform, the model, what the kernel needs, the certificate and the ' +
    'server, changes nothing, and says what to do. Exit code 78 for a configuration that cannot be used, 4 when something else fails.',
  examples: ['doctor', 'doctor --config /etc/mem.yaml --output json'],
  async run({ io, output }, flags) {
    const config = loadConfig({ flags, env: io.env })
    const warnings = checkStart(config)
    const findings: Finding[] = [
      { check: 'configuration', state: 'ok', message: config.file ?? 'defaults, environment and flags' },
      ...warnings.map((message): Finding => ({ check: 'configuration', state: 'warning', message })),
      ...(await examine(config, io.env)),
    ]
    const bad = findings.filter(({ state }) => state === 'failed').length
    await output.list({ ok: bad === 0, findings }, findings, row)
    if (bad > 0) throw new CliError(EXIT.failure, bad === 1 ? '1 check failed' : `${bad} checks failed`)
  },
})

const row = ({ state, check, message, fix }: Finding): Row => [state, check, message, fix && `(${fix})`]
