import { KernelError } from '../errors.ts'
import type { Dispatch, TransportExecutor } from '../ports.ts'

/**
 * Carries out an action in this process, and gives its output.
 * @throws KernelError when it did nothing; whatever else it throws leaves open what it did
 */
export type ActionHandler = (dispatch: Dispatch) => Promise<Record<string, unknown>>

/** Actions of this process: `endpoint` names the handler. Contract: kernel-2.md 1 */
export const createFunctionTransport = (handlers: Readonly<Record<string, ActionHandler>>): TransportExecutor => ({
  async execute(dispatch) {
    const { endpoint = '' } = dispatch.transport
    const handler = Object.hasOwn(handlers, endpoint) ? handlers[endpoint] : undefined
    if (!handler) {
      return { kind: 'failed', error: `there is no handler ${endpoint}`, phase: 'dispatch', retryable: false }
    }
    try {
      return { kind: 'succeeded', output: await handler(dispatch) }
    } catch (error) {
      if (!(error instanceof KernelError)) throw error
      const retryable = error.code === 'unavailable'
      return { kind: 'failed', error: error.message, phase: 'dispatch', retryable }
    }
  },
})
