import { prepareCollector } from './collector.ts'
import type { Io } from './command.ts'
import { runPlain } from './plain.ts'

const VERBS = {
  serve: async () => (await import('./commands/serve.ts')).serve,
  gateway: async () => (await import('./commands/gateway.ts')).gateway,
  mcp: async () => (await import('./commands/mcp.ts')).mcp,
}

/** Runs the verbs that serve. */
export function runQuick(words: readonly string[], io: Io): Promise<number | undefined> {
  prepareCollector()
  return runPlain(VERBS, words, io)
}
