import { existsSync } from 'node:fs'
import { relative } from 'node:path'
import { readKernelContext } from '../../app/kernel-context.ts'
import { errorText } from '../../base/errors.ts'
import { maskPassword } from '../../config/dsn.ts'
import type { Config, Sources } from '../../config/load.ts'
import { refuseDamaged } from '../../database/damage.ts'
import { readSkillFiles } from '../../kernel/actions/catalog.ts'
import { createCredentialResolver } from '../../kernel/actions/credentials.ts'
import { readSchemaVersion } from '../../kernel/store/store.ts'
import { failed, ok, warning, type Finding, type Found } from '../finding.ts'

/** Tries what the kernel will need, without making or changing anything; no value of a credential is told. */
export async function examineKernel({ kernel }: Config, env: Sources['env']): Promise<Finding[]> {
  const { model } = kernel
  return [
    { check: 'kernel store', ...(await checkStore(kernel)) },
    {
      check: 'kernel model',
      ...ok(model ? `${model.name} at ${maskPassword(model.baseUrl)}` : 'none: runs of agents stay queued'),
    },
    { check: 'kernel skills', ...(await checkSkills(kernel)) },
    { check: 'kernel credentials', ...(await checkCredentials(kernel, env)) },
  ]
}

async function checkStore({ storage }: Config['kernel']): Promise<Found> {
  const where = storage.driver === 'sqlite' ? storage.path : `${maskPassword(storage.dsn)}, schema ${storage.schema},`
  const place = `${storage.driver} ${where}`
  if (storage.driver === 'sqlite' && !existsSync(storage.path)) return ok(`${place}, made at the first start`)
  try {
    const version = await readSchemaVersion(storage)
    if (storage.driver === 'sqlite') refuseDamaged(storage.path, 'it', true)
    return ok(version === 0 ? `${place} answers, filled at the first start` : `${place} answers, schema ${version}`)
  } catch (error) {
    return failed(
      `${place}: ${maskPassword(errorText(error))}`,
      storage.driver === 'sqlite'
        ? 'Is it a SQLite file of this version of mem, that this user may read and write, and whole?'
        : 'Is PostgreSQL running there, and does kernel.storage.dsn name user, password and database?',
    )
  }
}

async function checkSkills({ registry: { skillsDir } }: Config['kernel']): Promise<Found> {
  if (!existsSync(skillsDir)) return ok(`none: there is no ${skillsDir}`)
  try {
    const { failures } = await readSkillFiles(skillsDir)
    if (failures.length === 0) return ok(`${skillsDir} can be used`)
    const told = failures.map(({ file, error }) => `${relative(skillsDir, file)}: ${error}`)
    return warning(told.join('; '), `Correct them in ${skillsDir}; agents do without them until the next start.`)
  } catch (error) {
    return failed(errorText(error), `Give this user the right to read ${skillsDir}.`)
  }
}

async function checkCredentials({ contextFile }: Config['kernel'], env: Sources['env']): Promise<Found> {
  try {
    const sources = await readKernelContext(contextFile)
    const resolver = createCredentialResolver(sources, (name) => env[name])
    const read = await Promise.allSettled(sources.map((source) => resolver.resolve(source.scope, source)))
    const refused = read.flatMap((one) => (one.status === 'rejected' ? [errorText(one.reason)] : []))
    if (refused.length > 0)
      return warning(refused.join('; '), 'Actions that need them fail; they are read on each use.')
    return ok(
      existsSync(contextFile) ? `${sources.length} of ${contextFile} can be read` : `none: there is no ${contextFile}`,
    )
  } catch (error) {
    return failed(errorText(error), 'The server does not start with it.')
  }
}
