import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import * as z from 'zod'
import type { Clock } from '../base/clock.ts'
import { scope, type Party, type Scope } from './model/fields.ts'
import { RUN_KINDS } from './model/run.ts'
import type {
  ActionPolicy,
  ApprovalAuthorizer,
  CredentialResolver,
  ModelHost,
  ProposalValidator,
  SkillCatalog,
  TransportExecutor,
} from './ports.ts'
import type { KernelStore } from './store/store.ts'

/** What an embedder gives. Contract: kernel-2.md 14 */

const part = <T>(): z.ZodType<T, T> =>
  z.custom<T>((value) => typeof value === 'object' && value !== null, 'must be an object')
const fn = <T>(): z.ZodType<T, T> => z.custom<T>((value) => typeof value === 'function', 'must be a function')

const LOGGER_METHODS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'child'] as const
const isLogger = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  LOGGER_METHODS.every((name) => typeof Reflect.get(value, name) === 'function')

const concurrency = z.int().min(1).max(256)
const bound = z.int().min(0).max(1_000_000)
const ms = z.int().min(1).max(86_400_000)
const prefix = z.string().min(1).max(64)

const RUN_WORKERS = {
  runKinds: z.array(z.enum(RUN_KINDS)).min(1).exactOptional(),
  turnsPerClaim: z.int().min(1).max(1000).exactOptional(),
  leaseMs: ms.exactOptional(),
  pollIntervalMs: ms.exactOptional(),
  maxActivePerAgent: bound.exactOptional(),
  maxActivePerOwner: bound.exactOptional(),
  maxActivePerObjective: bound.exactOptional(),
  maxActivePerConcurrencyKey: bound.exactOptional(),
  workerIdPrefix: prefix.exactOptional(),
}

const ACTION_WORKERS = {
  leaseMs: ms.exactOptional(),
  credentialResolver: part<CredentialResolver>().exactOptional(),
  workerIdPrefix: prefix.exactOptional(),
}

const STATIC = { scopes: z.array(scope), concurrency: concurrency.default(1) }
const DYNAMIC = {
  scopeSource: fn<() => Scope[] | Promise<Scope[]>>(),
  reconcileMs: ms.exactOptional(),
  concurrency: concurrency.default(2),
}

const options = z.strictObject({
  /** The embedder opens and closes it. In memory without one. */
  store: part<KernelStore>().exactOptional(),
  /** The engine closes it. */
  persistentStore: part<KernelStore>().exactOptional(),
  /** JSON lines on standard error without one. */
  logger: z.custom<Logger>((value) => isLogger(value), `must have ${LOGGER_METHODS.join(', ')}`).exactOptional(),
  /** Turns and actions at once. */
  workerConcurrencyLimit: concurrency.default(8),
  agentRunWorkers: z.strictObject({ ...RUN_WORKERS, ...STATIC }).exactOptional(),
  dynamicAgentRunWorkers: z.strictObject({ ...RUN_WORKERS, ...DYNAMIC }).exactOptional(),
  actionWorkers: z.strictObject({ ...ACTION_WORKERS, ...STATIC }).exactOptional(),
  dynamicActionWorkers: z.strictObject({ ...ACTION_WORKERS, ...DYNAMIC }).exactOptional(),
  actionPolicy: part<ActionPolicy>().exactOptional(),
  actionProposalValidators: z.array(fn<ProposalValidator>()).default([]),
  approvalAuthorizer: part<ApprovalAuthorizer>().exactOptional(),
  skillCatalog: part<SkillCatalog>().exactOptional(),
  /** Without one runs stay queued. */
  modelHost: part<ModelHost>().exactOptional(),
  /** Whether runs are taken; where there are run workers they are. */
  runDispatcher: z.boolean().exactOptional(),
  /** By kind, beside `http`. */
  transports: z.record(z.string(), part<TransportExecutor>()).default({}),
  /** Who a request is from, in place of what it claims. */
  hostIdentity: fn<(request: IncomingMessage) => Party | undefined | Promise<Party | undefined>>().exactOptional(),
  registryMutationAuthority: z.boolean().default(false),
  clock: part<Clock>().exactOptional(),
})

export type KernelEngineOptions = z.input<typeof options>
export type CheckedOptions = z.output<typeof options>

/** @throws TypeError naming an option that does not fit */
export function checkOptions(given: KernelEngineOptions): CheckedOptions {
  const checked = options.safeParse(given, { jitless: true }) // compiling is not worth it for once
  if (checked.success) return checked.data
  const [issue] = checked.error.issues
  const path = issue?.path.join('.') ?? ''
  throw new TypeError(`KernelEngine: ${path === '' ? '' : `${path}: `}${issue?.message}`)
}
