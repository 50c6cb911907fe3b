import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { ConfigError } from '../../src/config/errors.ts'
import { type Config, loadConfig } from '../../src/config/load.ts'

/** A working directory with a home directory inside, for one test. */
export interface Workspace {
  directory: string
  /** Writes a file below the directory and gives its path. */
  write(name: string, text: string, mode?: number): string
  load(env?: Record<string, string>, flags?: Record<string, unknown>): Config
}

export function makeWorkspace(files: Record<string, string> = {}): Workspace {
  const directory = mkdtempSync(join(tmpdir(), 'mem-test-config-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const write = (name: string, text: string, mode = 0o644): string => {
    const path = join(directory, name)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    chmodSync(path, mode)
    return path
  }
  for (const [name, text] of Object.entries(files)) write(name, text)
  return {
    directory,
    write,
    load: (env = {}, flags = {}) =>
      loadConfig({ env: { HOME: join(directory, 'home'), ...env }, flags, cwd: directory }),
  }
}

/** The ConfigError that an action throws. */
export function configError(action: () => unknown): ConfigError {
  try {
    action()
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error('no error was thrown')
}
