import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import * as z from 'zod'
import { errorText } from '../base/errors.ts'
import { ConfigError } from '../config/errors.ts'
import { readConfigFile } from '../config/file.ts'
import { checkCredentialFile, type CredentialSource } from '../kernel/actions/credentials.ts'
import { id, scope, text } from '../kernel/model/fields.ts'

/** The credentials that actions of a scope may use. Contract: kernel-2.md 16. */

const credential = z
  .strictObject({
    scope,
    kind: text(128),
    id,
    displayName: text(200),
    bindingKeys: z.array(text(128)).default([]),
    env: text(256).optional(),
    file: text(4096).optional(),
  })
  .refine(({ env, file }) => (env === undefined) !== (file === undefined), 'must have one of env and file')

const contextFile = z.strictObject({
  apiVersion: z.literal('kernel/v1alpha1'),
  kind: z.literal('StandaloneContext'),
  credentials: z
    .array(credential)
    .default([])
    .refine((all) => new Set(all.map(nameOf)).size === all.length, 'must name each scope, kind and id once'),
})

const nameOf = ({ scope: where, kind, id: name }: z.output<typeof credential>): string =>
  JSON.stringify([where.kind, where.id, kind, name])

/**
 * Where credentials are; none when the file is missing. Values are read on use; that their files are fit to hold them shows here.
 * @throws ConfigError for a file that cannot be used
 */
export async function readKernelContext(path: string): Promise<CredentialSource[]> {
  if (!existsSync(path)) return []
  const { success, data, error } = contextFile.safeParse(readConfigFile(path))
  if (!success) {
    const [issue] = error.issues
    throw new ConfigError('--kernel-context', `${path}: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`)
  }
  const sources = data.credentials.map(({ scope: where, kind, id: name, env, file = '' }) => ({
    scope: where,
    kind,
    id: name,
    ...(env === undefined ? { file: resolve(dirname(path), file) } : { env }),
  }))
  for (const source of sources) {
    if (!('file' in source)) continue
    await checkCredentialFile(source.file).catch((failure: unknown) => {
      throw new ConfigError('--kernel-context', `${path}: ${errorText(failure)}`)
    })
  }
  return sources
}
