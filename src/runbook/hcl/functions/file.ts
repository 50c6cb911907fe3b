import { FunctionError } from '../errors.ts'
import type { Scope } from '../scope.ts'
import { fixed, type Arguments, type FunctionTable } from './arguments.ts'

/** Contract: runbook.md 3.3, 5.4. The scope decides which files may be read. */
export const FILE_FUNCTIONS: FunctionTable = {
  file: fixed(1, (a, scope) => {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(read(a, scope))
    } catch (error) {
      if (error instanceof FunctionError) throw error
      throw new FunctionError('the file is no UTF-8 text, use filebase64', 0)
    }
  }),
  filebase64: fixed(1, (a, scope) => read(a, scope).toString('base64')),
  fileexists: fixed(1, (a, scope) => {
    if (!scope.fileExists) throw new FunctionError('files are not available here')
    return scope.fileExists(a.text(0))
  }),
}

function read(a: Arguments, scope: Scope): Buffer {
  if (!scope.readFile) throw new FunctionError('files are not available here')
  return scope.readFile(a.text(0))
}
