import { errorText } from '../base/errors.ts'
import type { HealthCheck } from './health.ts'
import type { ModelHost } from './ports.ts'

/** A model that remembers how its last call went: health asks it, and makes no call of its own. Contract: kernel-1.md 2 */
export function watchModel(model: ModelHost): { model: ModelHost; check: () => Promise<HealthCheck> } {
  let last: HealthCheck = { status: 'ok', detail: 'not asked yet' }
  return {
    model: {
      ...(model.costOf && { costOf: (tokens) => model.costOf?.(tokens) }),
      async propose(envelope, call) {
        try {
          const reply = await model.propose(envelope, call)
          last = { status: 'ok' }
          return reply
        } catch (error) {
          // Who gave up the call says nothing of the model.
          if (!call.signal.aborted) last = { status: 'degraded', detail: errorText(error) }
          throw error
        }
      },
    },
    check: async () => last,
  }
}
