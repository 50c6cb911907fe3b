/** Exit codes. Contract: memory.md 11.1. */
export const EXIT = {
  ok: 0,
  usage: 1,
  unauthorized: 2,
  server: 3,
  failure: 4,
  conflict: 5,
  notFound: 8,
  configuration: 78,
  /** As shells tell Ctrl-C. */
  stopped: 130,
} as const

/** Something the user can put right: what happened, what to do next, and the code to leave with. */
export class CliError extends Error {
  readonly exitCode: number
  readonly hint: string | undefined

  constructor(exitCode: number, message: string, hint?: string) {
    super(message)
    this.name = 'CliError'
    this.exitCode = exitCode
    this.hint = hint
  }
}

export const usageError = (message: string, hint?: string): CliError => new CliError(EXIT.usage, message, hint)

/** The exit code of an HTTP status that is no success. */
export function exitOfStatus(status: number): number {
  if (status === 401) return EXIT.unauthorized
  if (status === 404) return EXIT.notFound
  if (status === 412) return EXIT.conflict
  return status >= 500 ? EXIT.server : EXIT.failure
}
