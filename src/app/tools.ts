import { systemClock } from '../base/clock.ts'
import { keyTag } from '../config/key-file.ts'
import type { Config } from '../config/load.ts'
import { Session, type SessionParts } from '../mcp/session.ts'
import { serveLines } from '../mcp/stdio.ts'
import { MemoryTools } from '../memory/tools/index.ts'
import { createMemory, type Memory } from './memory.ts'

/**
 * Serves the tools over standard streams, until the input ends, on the stores themselves. Contract: memory.md 12.1.
 * @throws ConfigError when a store is unusable.
 */
export async function serveTools(
  config: Config,
  input: AsyncIterable<Uint8Array>,
  write: (line: string) => unknown,
): Promise<void> {
  const memory = await createMemory(config, systemClock, true)
  try {
    const { apiKey } = config
    if (apiKey === undefined) memory.log.warn({}, 'no API key: whoever starts this program may read and write')
    const peer = apiKey === undefined ? { authorized: true } : { authorized: false, apiKeyId: keyTag(apiKey) }
    memory.service.start()
    await serveLines(new Session(toolParts(config, memory), peer), input, write)
  } finally {
    await memory.close()
  }
}

/** What a session of tools works with. */
export function toolParts(config: Config, { service, ids, log }: Memory): SessionParts {
  return { tools: new MemoryTools(service, ids, config.server.timeout), log, apiKey: config.apiKey }
}
