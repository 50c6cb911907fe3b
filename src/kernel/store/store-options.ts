import * as z from 'zod'
import { systemClock, type Clock } from '../../base/clock.ts'
import type { MigrateOptions } from '../../database/migrate.ts'

/** What whoever opens a store may say of it. Contract: kernel-1.md 15 */

const ms = (max: number): z.ZodInt => z.int().min(1).max(max)
const DAY_MS = 86_400_000

const clock = z.custom<Clock>((value) => typeof value === 'object' && value !== null).default(systemClock)

export const sqliteOptions = z.strictObject({
  /** How long another process that writes is waited for. */
  busyTimeoutMs: ms(600_000).default(5000),
  clock,
})
export type SqliteStoreOptions = z.input<typeof sqliteOptions>

export const postgresOptions = z.strictObject({
  schema: z
    .string()
    .regex(/^[a-z_][a-z0-9_]{0,62}$/, 'must be a lower-case identifier')
    .default('kernel'),
  pool: z
    .strictObject({
      maxOpen: z.int().min(1).max(1024).default(16),
      /** What a burst opened beyond these is closed soon after it. */
      maxIdle: z.int().min(0).max(1024).default(4),
      maxLifetimeMs: ms(DAY_MS).default(1_800_000),
      maxIdleTimeMs: ms(DAY_MS).default(300_000),
    })
    .prefault({}),
  /** How long a process waits for another one that changes the schema, and how often it looks. */
  migrationLock: z
    .strictObject({
      waitMs: ms(600_000).default(20_000),
      pollMs: ms(60_000).default(100),
    })
    .prefault({}),
  migrationObserver: z
    .custom<NonNullable<MigrateOptions['observer']>>((value) => typeof value === 'function', 'must be a function')
    .exactOptional(),
  clock,
})
export type PostgresStoreOptions = z.input<typeof postgresOptions>

/** @throws TypeError naming an option that does not fit */
export function checkStoreOptions<T extends z.ZodType>(schema: T, given: z.input<T>): z.output<T> {
  const checked = schema.safeParse(given, { jitless: true }) // compiling is not worth it for once
  if (checked.success) return checked.data
  const [issue] = checked.error.issues
  throw new TypeError(`kernel store: ${[issue?.path.join('.'), issue?.message].filter(Boolean).join(': ')}`)
}
