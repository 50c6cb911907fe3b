/** A configuration that cannot be used: the program leaves with 78. Contract: memory.md 10. */
export class ConfigError extends Error {
  /** The key at fault, as `server.addr`; with several, the first; `config` for the file as a whole. */
  readonly key: string

  constructor(key: string, message: string) {
    super(message)
    this.name = 'ConfigError'
    this.key = key
  }
}
