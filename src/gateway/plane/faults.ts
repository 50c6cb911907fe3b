import { GatewayError } from '../errors.ts'
import { UpstreamFault } from '../exchange/exchange.ts'

/** What is recorded as the status where the client has gone before its answer. */
export const CLOSED = 499

/** The client has gone: nobody reads why. */
export const goneFault = (): UpstreamFault =>
  new UpstreamFault('closed', new GatewayError('internal_error', 'the client has gone', { status: CLOSED }))

/** The whole request took longer than it may. */
export const lateFault = (): UpstreamFault =>
  new UpstreamFault('deadline', new GatewayError('upstream_timeout', 'the call took longer than it may'))

export const shuttingDown = (): GatewayError =>
  new GatewayError('shutting_down', 'the server is shutting down; come again in a moment')

export const internalError = (): GatewayError =>
  new GatewayError('internal_error', 'the server met a fault; it is in the log under this request id')
