import { constants } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
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

const refusal = (path: string, why: string): Error => new Error(`credential file ${path} ${why}`)

/** @throws Error unless it is a regular file, no link, that nobody else may read and that holds something */
export const readCredentialFile = (path: string): Promise<string> =>
  withCredentialFile(path, async (file) => {
    const value = (await file.readFile('utf8')).replace(/\r?\n$/, '')
    if (value === '') throw refusal(path, 'is empty')
    return value
  })

/** Its value is not read. @throws as `readCredentialFile` */
export const checkCredentialFile = (path: string): Promise<void> => withCredentialFile(path, async () => {})

async function withCredentialFile<T>(path: string, use: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (error: NodeJS.ErrnoException) => {
      throw refusal(path, error.code === 'ELOOP' ? 'must not be a symbolic link' : `cannot be read: ${error.code}`)
    },
  )
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw refusal(path, 'must be a regular file')
    if ((stat.mode & OTHERS) !== 0) throw refusal(path, 'may be read by others: run chmod 600')
    if (stat.size > MAX_BYTES) throw refusal(path, `is above ${MAX_BYTES} bytes`)
    if (stat.size === 0) throw refusal(path, 'is empty')
    return await use(file)
  } finally {
    await file.close()
  }
}
