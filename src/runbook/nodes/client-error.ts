import { errorText } from '../../base/errors.ts'
import { NodeError, type NodeErrorCode } from '../errors.ts'
import { present } from './settings.ts'

const CODES: Readonly<Record<number, NodeErrorCode>> = {
  401: 'forbidden',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
}

/** An orchestrator client's error by its `status`; one without any never reached the service. Contract: runbook.md 6.9. */
export function clientError(type: string, error: unknown): NodeError {
  if (error instanceof NodeError) return new NodeError(error.code, `${type}: ${error.message}`, error.details)
  const status = error instanceof Error && 'status' in error ? Number(error.status) : undefined
  const code = status === undefined ? 'network_error' : (CODES[status] ?? 'service_rejected')
  return new NodeError(code, `${type}: ${errorText(error)}`, present({ statusCode: status }))
}
