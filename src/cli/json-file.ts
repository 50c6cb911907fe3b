import { mkdir, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorText } from '../base/errors.ts'
import { isMap } from '../base/json.ts'
import { CliError, EXIT } from './exit.ts'

type Contents = Readonly<Record<string, unknown>>

/** A file of another program, with one JSON object. */
export interface JsonFile {
  contents: Contents
  /** Replaces it whole or not at all, for its program may be reading: what a link leads to, with its indentation and access rights. */
  write(contents: Contents): Promise<void>
}

/** An absent or blank file is an empty object. @throws CliError when it cannot be read, or is anything else than plain JSON. */
export async function openJsonFile(file: string): Promise<JsonFile> {
  const found = await orNothing(file, realpath(file))
  const text = found === undefined ? '' : await orNothing(file, readFile(found, 'utf8'))
  const target = found ?? file
  const indent = /^([ \t]+)"/m.exec(text ?? '')?.[1] ?? '  '
  return {
    contents: parse(file, text ?? ''),
    write: async (contents) => {
      try {
        await mkdir(dirname(target), { recursive: true })
        const mode = found === undefined ? 0o644 : (await stat(found)).mode & 0o777
        await writeFile(`${target}.new`, `${JSON.stringify(contents, null, indent)}\n`, { mode })
        await rename(`${target}.new`, target)
      } catch (error) {
        throw new CliError(EXIT.failure, `cannot write ${file}: ${errorText(error)}`)
      }
    },
  }
}

async function orNothing<T>(file: string, reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw new CliError(EXIT.failure, `cannot read ${file}: ${errorText(error)}`)
  }
}

function parse(file: string, text: string): Contents {
  const whole = text.replace(/^\ufeff/, '')
  try {
    const value: unknown = whole.trim() === '' ? {} : JSON.parse(whole)
    if (isMap(value)) return value
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw notPlain(file)
}

/** What holds the entries of one kind: an object, if it is there. @throws CliError when it is something else. */
export function sectionOf(file: string, contents: Contents, name: string): Contents {
  const section = contents[name] ?? {}
  if (!isMap(section)) throw notPlain(`${name} in ${file}`)
  return section
}

const notPlain = (what: string): CliError =>
  new CliError(
    EXIT.failure,
    `${what} is not a plain JSON object, and is left as it is`,
    'It may have comments. Put the entry that --print shows in by hand.',
  )
