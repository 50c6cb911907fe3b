import { CodedError, errorText } from '../base/errors.ts'
import { EvaluationError } from './hcl/errors.ts'
import type { Diagnostic } from './hcl/diagnostics.ts'
import type { SourceRange } from './hcl/source.ts'
import type { Value } from './hcl/values.ts'

/** Codes and classes of runbook.md 12.2; `http_status` and `sql_error` depend on the answer. */
const CLASSES = {
  config: [
    'config_invalid',
    'identifier_invalid',
    'header_invalid',
    'items_invalid',
    'payload_invalid',
    'data_invalid',
  ],
  expression: ['expression_error', 'limit_exceeded', 'loop_limit'],
  timeout: ['timeout'],
  network: ['network_error'],
  rate_limited: ['rate_limited'],
  server_error: [],
  client_error: [
    'auth_failed',
    'service_rejected',
    'smtp_rejected',
    'not_found',
    'forbidden',
    'conflict',
    'ai_refused',
    'ai_tool_limit',
    'embedding_failed',
    'job_failed',
  ],
  refused: ['address_refused', 'response_too_large', 'too_many_redirects', 'tls_failed', 'refused'],
  no_executor: ['no_executor'],
  cancelled: ['cancelled'],
  internal: ['internal'],
} as const

type ErrorClass = keyof typeof CLASSES
export type NodeErrorCode = (typeof CLASSES)[ErrorClass][number] | 'http_status' | 'sql_error'

/** What `retry.on` may name. */
export const ERROR_NAMES: readonly string[] = [
  ...Object.keys(CLASSES),
  ...Object.values(CLASSES).flat(),
  'http_status',
  'sql_error',
]

const CLASS_NAMES = new Map<string, ErrorClass>()
const register = (name: ErrorClass): void => {
  for (const code of CLASSES[name]) CLASS_NAMES.set(code, name)
}
for (const name in CLASSES) if (isClass(name)) register(name)

function isClass(name: string): name is ErrorClass {
  return name in CLASSES
}

/** How a node fails. `details.statusCode` and `details.sqlState` decide the class of `http_status` and `sql_error`. */
export class NodeError extends CodedError<NodeErrorCode> {
  /** The answer's Retry-After. */
  readonly retryAfterMs: number | undefined
  /** Of the expression that failed. */
  readonly range: NodeFailure['range']

  constructor(
    code: NodeErrorCode,
    message: string,
    details: Record<string, unknown> = {},
    { retryAfterMs, range }: { retryAfterMs?: number | undefined; range?: NodeFailure['range'] } = {},
  ) {
    super(code, message, details)
    this.retryAfterMs = retryAfterMs
    this.range = range
  }

  get class(): ErrorClass {
    const { statusCode, sqlState } = this.details
    if (this.code === 'http_status')
      return typeof statusCode === 'number' && statusCode >= 500 ? 'server_error' : 'client_error'
    if (this.code === 'sql_error') {
      return typeof sqlState === 'string' && /^(08|40|53|57)/.test(sqlState) ? 'server_error' : 'client_error'
    }
    return CLASS_NAMES.get(this.code) ?? 'internal'
  }
}

/** Any failure of a node as a `NodeError`; what is not ours is `internal`, without its stack. */
export function nodeError(error: unknown): NodeError {
  if (error instanceof NodeError) return error
  if (error instanceof EvaluationError)
    return new NodeError(error.code, error.located, {}, { range: error.range.toJSON() })
  return new NodeError('internal', errorText(error))
}

/** `error` of the report and of `nodes.x.error`. */
export interface NodeFailure {
  readonly code: NodeErrorCode
  readonly class: ErrorClass
  readonly message: string
  readonly node: string
  readonly range?: ReturnType<SourceRange['toJSON']> | undefined
  readonly attempts: number
  readonly details?: { readonly [key: string]: Value }
}

/** `runWorkflow` was given a workflow with errors. */
export class InvalidWorkflowError extends Error {
  readonly diagnostics: readonly Diagnostic[]

  constructor(diagnostics: readonly Diagnostic[]) {
    super(diagnostics.map(({ code, message, range }) => `${code} ${range.toString()}: ${message}`).join('\n'))
    this.diagnostics = diagnostics
  }
}
