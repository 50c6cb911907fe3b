import { loadConfig, type Config } from '../../config/load.ts'
import { printableConfig } from '../../config/print.ts'
import { checkStart } from '../../config/start-matrix.ts'
import { createEmbedder } from '../../memory/embedder/registry.ts'
import { defineCommand } from '../command.ts'
import { CONFIG_FLAG } from '../server-flags.ts'
import { toYaml } from '../yaml.ts'

export const printConfig = defineCommand({
  flags: CONFIG_FLAG,
  notes: 'Defaults, file and environment taken together; secrets and passwords as ***.',
  examples: ['print-config', 'print-config --config /etc/mem.yaml --output json'],
  async run({ io, output }, flags) {
    const config = loadConfig({ flags, env: io.env })
    const shown = printableConfig(config)
    const embedding = { ...shown['embedding'], fusion_weight: fusionWeight(config) }
    const complete = { ...shown, embedding }
    await output.text(complete, toYaml(complete), config.file === undefined ? undefined : `# ${config.file}`)
  },
})

export const checkConfig = defineCommand({
  flags: CONFIG_FLAG,
  notes: 'Exit code 78, and the key at fault, when `mem serve` would not start with it.',
  examples: ['check-config', 'check-config --config /etc/mem.yaml'],
  async run({ io, output }, flags) {
    const config = loadConfig({ flags, env: io.env })
    const warnings = checkStart(config)
    const { readGatewayFiles } = await import('../../gateway/files.ts')
    readGatewayFiles(config)
    for (const warning of warnings) output.note(`warning: ${warning}`)
    await output.text({ ok: true, warnings }, 'config ok')
  },
})

/** What the server model's vectors count in the default fusion. Contract: memory.md 4.2. */
function fusionWeight({ embedding: { model, batch_size, timeout } }: Config): number {
  const settings = {
    model,
    providers: {},
    batchSize: batch_size,
    timeoutMs: timeout,
    queryPrefix: '',
    documentPrefix: '',
  }
  return createEmbedder(model, settings).fusionWeight
}
