import { readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, isAbsolute, relative, resolve, sep } from 'node:path'
import { FunctionError } from './hcl/errors.ts'
import type { Scope } from './hcl/scope.ts'

const MAX_FILE_BYTES = 10 * 1024 * 1024

/** Files below the directory of the workflow, or below an allowed one, links resolved first. Contract: runbook.md 5.4. */
export function fileAccess(
  workflowFile: string,
  allowPaths: readonly string[] = [],
): Required<Pick<Scope, 'readFile' | 'fileExists'>> {
  const base = dirname(resolve(workflowFile))
  const roots = [base, ...allowPaths.map((path) => resolve(path))].map(realPath)
  const locate = (path: string): string | undefined => {
    const target = realPath(resolve(base, path))
    if (!roots.some((root) => isBelow(target, root))) {
      throw new FunctionError(`${path} is outside the directory of the workflow, give --allow-path`, 0)
    }
    const stat = statSync(target, { throwIfNoEntry: false })
    return stat?.isFile() ? target : undefined
  }
  return {
    fileExists: (path) => locate(path) !== undefined,
    readFile: (path) => {
      const target = locate(path)
      if (target === undefined) throw new FunctionError(`no file ${path}`, 0)
      if (statSync(target).size > MAX_FILE_BYTES) throw new FunctionError(`${path} is larger than 10 MiB`, 0)
      return readFileSync(target)
    },
  }
}

/** The path with links resolved, as far as it exists. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : resolve(realPath(parent), relative(parent, path))
  }
}

function isBelow(path: string, root: string): boolean {
  const way = relative(root, path)
  return way === '' || !(way === '..' || way.startsWith(`..${sep}`) || isAbsolute(way))
}
