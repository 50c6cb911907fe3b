import type { Io } from './command.ts'
import { runPlain } from './plain.ts'

const VERBS = {
  run: async () => (await import('./commands/run.ts')).run,
  validate: async () => (await import('./commands/validate.ts')).validate,
}

/** Runs the verbs that people and scripts start often. */
export const runQuick = (words: readonly string[], io: Io): Promise<number | undefined> => runPlain(VERBS, words, io)
