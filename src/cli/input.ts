import { readFileSync } from 'node:fs'
import { errorText } from '../base/errors.ts'
import type { Io } from './command.ts'
import { CliError, EXIT, usageError } from './exit.ts'

/** The text of a file, `-` being standard input; byte for byte, so that it must be UTF-8. */
export async function readText(io: Io, file: string): Promise<string> {
  const bytes = file === '-' ? await readAll(io.stdin) : readBytes(file)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new CliError(EXIT.failure, `${file === '-' ? 'standard input' : file} is not UTF-8 text`)
  }
}

/** A secret in a file, without a byte order mark and its last line break; `-` is standard input. @throws CliError when it is empty */
export async function readSecretFile(io: Io, file: string): Promise<string> {
  const secret = (await readText(io, file)).replace(/^\ufeff/, '').replace(/\r?\n$/, '')
  if (secret !== '') return secret
  throw new CliError(EXIT.failure, `${file === '-' ? 'standard input' : file} is empty`)
}

async function readAll(stdin: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stdin) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function readBytes(file: string): Uint8Array {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new CliError(
      EXIT.failure,
      `cannot read ${file}: ${errorText(error)}`,
      'Check the path; `-` is standard input.',
    )
  }
}

/** Content from exactly one of `--text` (`-` = standard input) and `--from-file`. */
export async function readContent(io: Io, text: string | undefined, file: string | undefined): Promise<string> {
  if ((text === undefined) === (file === undefined)) {
    throw usageError('the content must come from one of --text and --from-file', '`--text -` reads standard input.')
  }
  if (file !== undefined) return readText(io, file)
  return text === undefined || text === '-' ? readText(io, '-') : text
}

/** `k=v` pairs as a map; the first `=` divides. Undefined when there are none. */
export function parsePairs(flag: string, pairs: readonly string[]): Record<string, string> | undefined {
  const entries = pairs.map((pair): [string, string] => {
    const at = pair.indexOf('=')
    if (at < 1) throw usageError(`--${flag} '${pair}' is not of the form key=value`)
    return [pair.slice(0, at), pair.slice(at + 1)]
  })
  return entries.length > 0 ? Object.fromEntries(entries) : undefined
}

/** @throws CliError (usage) that names `what` when the text is not JSON. */
export function parseJson(what: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw usageError(`${what} is not JSON: ${errorText(error)}`)
  }
}
