import { openMetadata, withPlatform } from '../../app/platform.ts'
import { systemClock, toTimestamp } from '../../base/clock.ts'
import { loadConfig, type Config } from '../../config/load.ts'
import type { Database } from '../../database/database.ts'
import { MigrationError } from '../../database/migrate.ts'
import { RestError } from '../../platform/errors.ts'
import { organizationRequest, type Organization, type OrganizationRequest } from '../../platform/model.ts'
import type { Founded } from '../../platform/organizations.ts'
import { parseRequest } from '../../platform/routes/route.ts'
import { downgradeSchema, readSchema, upgradeSchema } from '../../platform/schema.ts'
import { defineCommand, type Io } from '../command.ts'
import { CliError, EXIT, exitOfStatus, usageError } from '../exit.ts'
import type { Row } from '../output.ts'
import { PASSWORD_FLAG, readPassword } from '../platform/password.ts'
import { CONFIG_FLAG, DATA_DIR_FLAG } from '../server-flags.ts'
import { requireDatabase } from '../stores.ts'

/** Verbs that open the store themselves, beside a running server or without one. Contract: git-host.md 2.8. */

const STORE_FLAGS = { ...CONFIG_FLAG, ...DATA_DIR_FLAG } as const
const ADMIN_FLAGS = {
  email: { value: 'address', required: true, help: 'E-mail address of its first admin' },
  ...PASSWORD_FLAG,
} as const

const foundedRows = ({ organization, user }: Founded): Row[] => [
  [organization.id, 'organization', organization.name],
  [user.id, 'admin', user.email],
]

export const init = defineCommand({
  flags: {
    organization: { value: 'name', required: true, help: 'Name of the first organization' },
    ...ADMIN_FLAGS,
    ...STORE_FLAGS,
  },
  notes: 'Makes the schema, the key file, the organization and its admin. Once is enough: again it is exit code 4.',
  examples: ['platform init --organization Acme --email ada@example.org --password-file password'],
  async run({ io, output }, { organization, email, 'password-file': file, ...flags }) {
    const config = loadConfig({ flags, env: io.env })
    const founded = await foundFirst(io, config, { organization, email }, file)
    const { key_file } = config.platform
    await output.answer({ ...founded, key_file }, () => foundedRows(founded))
    output.note(`Secrets will be sealed with ${key_file}: keep a copy of it apart from backups of the data.`)
  },
})

export const orgsAdd = defineCommand({
  args: { name: { help: 'Name of the organization' } },
  flags: { ...ADMIN_FLAGS, ...STORE_FLAGS },
  examples: ['platform orgs add Sirius --email grace@example.org --password-file password'],
  async run({ io, output }, { name, email, 'password-file': file, ...flags }) {
    const config = existingStore(loadConfig({ flags, env: io.env }))
    const founded = await refused(
      withPlatform(config, { upgrade: false }, async ({ organizations }) => {
        await organizations.requireInitialized()
        return organizations.add(await withPassword(io, { organization: name, email }, file))
      }),
    )
    await output.answer(founded, () => foundedRows(founded))
  },
})

export const orgsList = defineCommand({
  flags: STORE_FLAGS,
  examples: ['platform orgs list'],
  async run({ io, output }, flags) {
    const config = existingStore(loadConfig({ flags, env: io.env }))
    const organizations = await refused(
      withPlatform(config, { upgrade: false }, async (platform) => {
        await platform.organizations.requireInitialized()
        return platform.organizations.list()
      }),
    )
    await output.list({ organizations }, organizations, ({ id, name }: Organization) => [id, name])
  },
})

export const keysRotate = defineCommand({
  flags: { prune: { help: 'Also drop keys that nothing is sealed with any more' }, ...STORE_FLAGS },
  notes:
    'Makes a new key and seals every secret anew; running servers go on and pick it up. Interrupted, run it again: it ends ' +
    'what it had begun. Exit code 4 when something does not open; it stays as it is.',
  examples: ['platform keys rotate', 'platform keys rotate --prune'],
  async run({ io, output }, { prune, ...flags }) {
    const config = existingStore(loadConfig({ flags, env: io.env }))
    const report = await refused(
      withPlatform(config, { upgrade: false }, async ({ organizations, keys }) => {
        await organizations.requireInitialized()
        return keys.rotate({ prune: prune ?? false })
      }),
    )
    const { current, added, resealed, failed, pruned } = report
    await output.answer(report, () => [
      [current, added ? 'new key' : 'ended an earlier rotation', `${resealed} sealed anew`],
      ...pruned.map((key): Row => [key, 'dropped']),
      ...failed.map((place): Row => [place, 'does not open']),
    ])
    if (failed.length > 0) {
      throw new CliError(EXIT.failure, `${failed.length} sealed values do not open`, 'Save these secrets again.')
    }
  },
})

export const migrateUp = defineCommand({
  flags: STORE_FLAGS,
  notes: '`mem serve` does it by itself unless platform.auto_migrate is false.',
  examples: ['platform migrate up'],
  async run({ io, output }, flags) {
    const config = loadConfig({ flags, env: io.env })
    const states = await withSchema(config, async (database) => {
      await upgradeSchema(database, systemClock.now())
      return readSchema(database)
    })
    await output.list({ migrations: states.map(shown) }, states.map(shown), stateRow)
  },
})

export const migrateStatus = defineCommand({
  flags: STORE_FLAGS,
  examples: ['platform migrate status'],
  async run({ io, output }, flags) {
    const config = existingStore(loadConfig({ flags, env: io.env }))
    const states = (await withSchema(config, readSchema)).map(shown)
    await output.list({ migrations: states }, states, stateRow)
  },
})

export const migrateDown = defineCommand({
  flags: {
    to: { value: 'version', integer: true, required: true, help: 'The last version to keep; 0 keeps none' },
    yes: { help: 'Really drop what newer versions added' },
    ...STORE_FLAGS,
  },
  notes:
    'Drops the tables of newer versions and all that is in them: back up first, and stop the server. Secrets, projects and ' +
    'users go with them.',
  examples: ['platform migrate down --to 20261020010000 --yes', 'platform migrate down --to 0 --yes'],
  async run({ io, output }, { to, yes, ...flags }) {
    const config = existingStore(loadConfig({ flags, env: io.env }))
    const reverted = await withSchema(config, async (database) => {
      const states = await readSchema(database)
      if (to !== 0 && !states.some(({ version }) => version === to)) {
        throw usageError(`there is no version ${to}`, '`mem platform migrate status` shows them; 0 keeps none.')
      }
      const newer = states.filter(({ version, appliedAt }) => version > to && appliedAt !== undefined)
      if (newer.length > 0 && !yes) {
        const names = newer.map(({ version, name }) => `${version} (${name})`).join(', ')
        throw usageError(`this drops the data of ${names}`, 'Back up first, then say --yes.')
      }
      if (newer.length > 0) output.note('warning: only a backup brings this data back')
      return downgradeSchema(database, to)
    })
    await output.list({ reverted }, reverted, (version) => [version, 'reverted'])
  },
})

type State = ReturnType<typeof shown>

const shown = ({ version, name, appliedAt }: Awaited<ReturnType<typeof readSchema>>[number]) => ({
  version,
  name,
  ...(appliedAt !== undefined && { applied_at: toTimestamp(appliedAt) }),
})

const stateRow = ({ version, name, applied_at }: State): Row => [version, name, applied_at ?? 'not applied']

function existingStore(config: Config): Config {
  requireDatabase(config)
  return config
}

async function withSchema<T>(config: Config, work: (database: Database) => Promise<T>): Promise<T> {
  const database = await openMetadata(config)
  try {
    return await work(database)
  } catch (error) {
    throw error instanceof MigrationError ? new CliError(EXIT.configuration, error.message) : error
  } finally {
    await database.close()
  }
}

type Names = Omit<OrganizationRequest, 'password'>

/** Makes the first organization and its admin. @throws CliError before a password is asked for, where it is of no use */
export async function foundFirst(io: Io, config: Config, names: Names, file: string | undefined): Promise<Founded> {
  return refused(
    withPlatform(config, { upgrade: true }, async ({ organizations }) => {
      if (await organizations.isInitialized()) {
        const hint = '`mem platform orgs add` makes another organization.'
        throw new CliError(EXIT.failure, 'the platform is initialized already', hint)
      }
      return organizations.initialize(await withPassword(io, names, file))
    }),
  )
}

async function withPassword(io: Io, names: Names, file: string | undefined): Promise<OrganizationRequest> {
  parseRequest(organizationRequest.omit({ password: true }), names)
  const password = await readPassword(io, file, { isNew: true })
  return parseRequest(organizationRequest, { ...names, password })
}

/** What the platform refuses leaves with the exit code of its HTTP status. */
async function refused<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw error instanceof RestError ? new CliError(exitOfStatus(error.status), error.message) : error
  }
}
