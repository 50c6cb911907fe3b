import { errorText } from '../../base/errors.ts'
import type { Io } from '../command.ts'
import { usageError } from '../exit.ts'
import { readText } from '../input.ts'

/** What a file of JSON or YAML holds; `-` is standard input. @throws CliError (usage) for neither */
export async function readDocument(io: Io, file: string): Promise<unknown> {
  const text = await readText(io, file)
  const { fromYaml } = await import('../yaml.ts')
  try {
    return fromYaml(text)
  } catch (error) {
    throw usageError(`${file} is neither JSON nor YAML: ${errorText(error)}`)
  }
}
