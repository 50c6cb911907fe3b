import { ConflictError } from '../memory/export/restore.ts'
import { ExportError } from '../memory/export/format.ts'
import { MemoryError } from '../memory/errors.ts'
import { ImportConflict } from '../memory/importers/bring-in.ts'
import { SourceError } from '../memory/importers/found.ts'
import type { Context } from './command.ts'
import { CliError, EXIT } from './exit.ts'

/** For `export` and `import`: the workspaces that the flag names, behind the verb or before it; undefined for all. */
export function chosenWorkspaces({ settings, io }: Context, named: readonly string[]): readonly string[] | undefined {
  if (named.length > 0) return named
  const { workspace } = settings
  return workspace === undefined || workspace === io.env['MEM_WORKSPACE'] ? undefined : [workspace]
}

/** Runs what reads or writes an export; what a person can put right is told as such. */
export async function explained<T>(work: Promise<T>, file?: string): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (error instanceof CliError) throw error
    const about = file === undefined || file === '-' ? '' : `${file}: `
    if (error instanceof ConflictError || error instanceof ImportConflict) {
      const hint =
        '--conflict skip leaves what is here, --conflict overwrite replaces it; --dry-run tells all beforehand.'
      throw new CliError(EXIT.failure, error.message, hint)
    }
    if (error instanceof ExportError || error instanceof SourceError || error instanceof MemoryError) {
      throw new CliError(EXIT.failure, `${about}${error.message}`)
    }
    throw error
  }
}
