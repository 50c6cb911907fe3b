import type * as z from 'zod'
import { formatDuration } from '../base/duration.ts'
import { isMap } from '../base/json.ts'
import { maskPassword } from './dsn.ts'
import { entryOf, fieldsOf } from './known-keys.ts'
import type { Config } from './load.ts'
import { schema } from './schema.ts'
import { kinds } from './values.ts'

const HIDDEN = '***'

/**
 * What `print-config` shows, by section: mem.yaml's keys with secrets and passwords as `***` and durations as one
 * writes them; `embedding.providers` and `storage.s3` tell what the environment says. Contract: memory.md 10.
 */
export function printableConfig(config: Config): Record<string, Record<string, unknown>> {
  const shown = Object.fromEntries(
    fieldsOf(schema).map(([name, section]) => [
      name,
      printableSection(section, new Map(Object.entries(config)).get(name)),
    ]),
  )
  const providers = Object.entries(config.embedding.providers).map(([name, { api_key, base_url }]) => [
    name,
    {
      ...(api_key === undefined ? {} : { api_key: HIDDEN }),
      ...(base_url === undefined ? {} : { base_url: maskPassword(base_url) }),
    },
  ])
  return {
    ...shown,
    storage: { ...shown['storage'], ...(config.stores.content?.driver === 's3' && { s3: printableS3(config.s3) }) },
    embedding: { ...shown['embedding'], providers: Object.fromEntries(providers) },
  }
}

const printableS3 = ({ endpoint, region, accessKeyId, secretAccessKey, sessionToken }: Config['s3']) => ({
  endpoint: maskPassword(endpoint),
  region,
  ...(accessKeyId !== undefined && { access_key_id: HIDDEN }),
  ...(secretAccessKey !== undefined && { secret_access_key: HIDDEN }),
  ...(sessionToken !== undefined && { session_token: HIDDEN }),
})

function printableSection(section: z.core.$ZodType, values: unknown): Record<string, unknown> {
  if (!isMap(values)) return {}
  return Object.fromEntries(
    fieldsOf(section).flatMap(([name, field]) => {
      const value = values[name]
      return value === undefined ? [] : [[name, printable(field, value)]]
    }),
  )
}

function printable(field: z.core.$ZodType, value: unknown): unknown {
  const kind = kinds.get(field)?.kind
  if (kind === 'secret') return HIDDEN
  if (kind === 'duration' && typeof value === 'number') return formatDuration(value)
  if (typeof value === 'string') return maskPassword(value)
  if (!isMap(value)) return value
  const entry = entryOf(field)
  if (!entry) return printableSection(field, value)
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, printable(entry, each)]))
}
