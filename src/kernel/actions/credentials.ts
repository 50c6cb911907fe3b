import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Scope } from '../model/fields.ts'
import type { CredentialResolver } from '../ports.ts'
import { scopeKey } from '../store/scope-key.ts'

/** Where the value of a credential is: in a file, or in a variable of the environment. Contract: kernel-2.md 16 */
export type CredentialSource = { scope: Scope; kind: string; id: string } & ({ file: string } | { env: string })

/** Reads values on use, so that one that was renewed is known at once. @param environment gives a variable */
export function createCredentialResolver(
  sources: readonly CredentialSource[],
  environment: (name: string) => string | undefined,
): CredentialResolver {
  const keyOf = (scope: Scope, { kind, id }: { kind: string; id: string }): string =>
    JSON.stringify([scopeKey(scope), kind, id])
  const known = new Map(sources.map((source) => [keyOf(source.scope, source), source]))
  return {
    async resolve(scope, reference) {
      const source = known.get(keyOf(scope, reference))
      if (!source) throw new Error(`there is no credential ${reference.kind} ${reference.id} in this scope`)
      if ('file' in source) return readCredentialFile(source.file)
      const value = environment(source.env)
      if (!value) throw new Error(`${source.env} is not set: it holds credential ${reference.id}`)
      return value
    },
  }
}

const MAX_BYTES = 64 * 1024
const OTHERS = 0o077

/** @throws Error unless it is a regular file, no link, that nobody else may read and that holds something */
export async function readCredentialFile(path: string): Promise<string> {
  const refuse = (why: string): Error => new Error(`credential file ${path} ${why}`)
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (error: NodeJS.ErrnoException) => {
      throw refuse(error.code === 'ELOOP' ? 'must not be a symbolic link' : `cannot be read: ${error.code}`)
    },
  )
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw refuse('must be a regular file')
    if ((stat.mode & OTHERS) !== 0) throw refuse('may be read by others: run chmod 600')
    if (stat.size > MAX_BYTES) throw refuse(`is above ${MAX_BYTES} bytes`)
    const value = (await file.readFile('utf8')).replace(/\r?\n$/, '')
    if (value === '') throw refuse('is empty')
    return value
  } finally {
    await file.close()
  }
}
