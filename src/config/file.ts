import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseDocument } from 'yaml'
import { errorText } from '../base/errors.ts'
import { isMap } from '../base/json.ts'
import { ConfigError } from './errors.ts'

/** Where a configuration file may be, in the order of memory.md 10. */
export interface Places {
  /** `MEM_CONFIG`. */
  variable: string | undefined
  /** `--config`. */
  flag: string | undefined
  home: string
  cwd: string
}

/** The file to read; undefined when none is named and none of the usual ones exists.
 *  @throws ConfigError when a named file is missing. */
export function findFile({ variable, flag, home, cwd }: Places): string | undefined {
  const named = variable ?? flag
  if (named !== undefined) {
    const path = resolve(cwd, named)
    if (existsSync(path)) return path
    throw new ConfigError(
      'config',
      `configuration file ${path} (${variable ? 'MEM_CONFIG' : '--config'}) does not exist`,
    )
  }
  return [resolve(cwd, 'mem.yaml'), resolve(home, '.mem/config.yaml')].find((path) => existsSync(path))
}

/** The sections of a YAML file; a key without value is a key left out.
 *  @throws ConfigError with line and column when it is no YAML, or no map. */
export function readConfigFile(path: string): Record<string, unknown> {
  const content = readYaml(path)
  if (content === null) return {}
  if (!isMap(content)) throw new ConfigError('config', `${path} must hold sections with keys`)
  return withoutNulls(content)
}

function readYaml(path: string): unknown {
  try {
    const document = parseDocument(readFileSync(path, 'utf8'))
    const [error] = document.errors
    if (error?.code === 'MULTIPLE_DOCS') throw new Error('it must hold one document: a line of --- begins another')
    if (error) throw error
    return document.toJS()
  } catch (error) {
    // Its first line tells the position; the lines after it quote the file, which may hold a key.
    const [reason = ''] = errorText(error).split('\n')
    throw new ConfigError('config', `${path}: ${reason.replace(/:$/, '')}`)
  }
}

function withoutNulls(map: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(map).filter(([, value]) => value !== null)
  return Object.fromEntries(entries.map(([key, value]) => [key, isMap(value) ? withoutNulls(value) : value]))
}
