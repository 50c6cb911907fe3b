import { defined } from '../../base/defined.ts'
import type { Kernel } from '../../kernel/service.ts'
import type { Dimension } from '../../kernel/model/budget.ts'
import type { Party, Scope } from '../../kernel/model/fields.ts'
import { readCursor, writeCursor } from '../../kernel/routes/cursor.ts'
import type { RecordPage, PageRequest as RecordPageRequest } from '../../kernel/store/records.ts'
import { scopeKey } from '../../kernel/store/scope-key.ts'
import { invalidInput } from '../../memory/errors.ts'
import type { ActionRequest } from '../actions/action.ts'
import type { Form } from '../form.ts'
import { url } from '../format.ts'
import type { PageRequest } from '../pages/page.ts'

/** The kernel as the console shows it. */
export interface KernelConsole {
  kernel: Kernel
  /** Offered on each page; the first is shown at first. */
  scopes: readonly [Scope, ...(readonly Scope[])]
}

/** `kind:id`, as addresses and forms name a scope. */
export const scopeText = ({ kind, id }: Scope): string => `${kind}:${id}`

/** @throws invalid_input 400 */
export function scopeOf({ scopes: [first] }: KernelConsole, text: string | undefined): Scope {
  if (text === undefined) return first
  const [, kind, id] = /^([^:]+):(.+)$/.exec(text) ?? []
  if (kind === undefined || id === undefined) throw invalidInput('scope must be kind:id', 'scope')
  return { kind, id }
}

/** What every page of the kernel tells its template. */
export const shared = (console: KernelConsole, scope: Scope) => ({
  scope: scopeText(scope),
  scopes: [...new Set([...console.scopes.map(scopeText), scopeText(scope)])],
  dimensionNames: DIMENSION_NAMES,
})

const DIMENSION_NAMES: Record<Dimension, string> = {
  maxAttempts: 'Attempts',
  maxTurns: 'Turns',
  maxInputTokens: 'Input tokens',
  maxOutputTokens: 'Output tokens',
  maxTotalTokens: 'Tokens',
  maxCostMicros: 'Cost, millionths of a dollar',
  maxDurationMs: 'Duration, ms',
  maxActions: 'Actions',
}

const PAGE = 50

/** A page of a list, and the cursor of the next. @throws invalid for a cursor of another list */
export async function pageOf<T>(
  { kernel }: KernelConsole,
  { query }: PageRequest,
  list: string,
  scope: Scope,
  read: (page: RecordPageRequest) => Promise<RecordPage<T>>,
): Promise<{ items: T[]; isFirst: boolean; nextCursor?: string }> {
  const { cursorSecret } = kernel.context.store
  const name = `console ${list}\n${scopeKey(scope)}`
  const cursor = query('cursor')
  const after = cursor === undefined ? undefined : readCursor(cursorSecret, name, cursor)
  const { items, next } = await read({ limit: PAGE, ...(after && { after }) })
  return { items, isFirst: !after, ...(next && { nextCursor: writeCursor(cursorSecret, name, next) }) }
}

export const kernelPaths = {
  runs: (scope: string, query: Record<string, string | undefined> = {}): string =>
    url('/ui/kernel/runs', { scope, ...query }),
  run: (scope: string, id: string): string => url(`/ui/kernel/runs/${encodeURIComponent(id)}`, { scope }),
  objectives: (scope: string, query: Record<string, string | undefined> = {}): string =>
    url('/ui/kernel/objectives', { scope, ...query }),
  objective: (scope: string, id: string): string => url(`/ui/kernel/objectives/${encodeURIComponent(id)}`, { scope }),
  approvals: (scope: string, query: Record<string, string | undefined> = {}): string =>
    url('/ui/kernel/approvals', { scope, ...query }),
  activity: (scope: string, query: Record<string, string | undefined> = {}): string =>
    url('/ui/kernel/activity', { scope, ...query }),
  deployments: (scope: string, query: Record<string, string | undefined> = {}): string =>
    url('/ui/kernel/deployments', { scope, ...query }),
}

/** @throws invalid_input 400 unless the field is `type:id` */
export function partyOf(form: Form, field: string): Party {
  const [, type, id] = /^([^:]+):(.+)$/.exec(form.require(field)) ?? []
  if (type === undefined || id === undefined) throw invalidInput(`${field} must be type:id`, field)
  return { type, id }
}

/** Who acts when somebody acts here. */
export const CONSOLE_ACTOR = { type: 'user', id: 'console' }

/**
 * Does what a request to this route does, by the same rules; fields of the body without a value are left out.
 * @throws KernelError as the route does
 */
export async function send(
  console: KernelConsole,
  { form, caller }: ActionRequest,
  route: `${'POST' | 'PUT'} ${string}`,
  params: Readonly<Record<string, string>>,
  body: Record<string, unknown>,
): Promise<void> {
  const { kernel } = console
  const { kind, id } = scopeOf(console, form.require('scope'))
  const operation = form.text('operation')
  await kernel.handlerOf(route)({
    context: kernel.context,
    route,
    path: route.slice(route.indexOf('/')).replace(/\{(\w+)\}/g, (_, name: string) => params[name] ?? ''),
    params,
    query: new URLSearchParams({ scopeKind: kind, scopeId: id }),
    body: defined(body),
    // Of the form as it was shown: sent twice, it is done once.
    ...(operation !== undefined && { idempotencyKey: operation }),
    by: { actor: CONSOLE_ACTOR, actorSource: 'claimed', requestId: caller.requestId },
  })
}
