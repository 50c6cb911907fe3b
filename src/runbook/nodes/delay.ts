import { setTimeout as wait } from 'node:timers/promises'
import { NodeError } from '../errors.ts'
import { parseDuration } from '../hcl/duration.ts'
import type { NodeExecutor } from '../registry.ts'

const LIMIT = 24 * 3_600_000

/** Waits for one of `duration`, `seconds`, `milliseconds`. Contract: runbook.md 6.1. */
export const delayNode: NodeExecutor = {
  type: 'delay',
  effects: 'none',
  inputSchema: {
    type: 'object',
    properties: {
      duration: { type: ['number', 'string'], format: 'duration' },
      seconds: { type: 'number', minimum: 0, maximum: LIMIT / 1000 },
      milliseconds: { type: 'number', minimum: 0, maximum: LIMIT },
    },
    oneOf: [{ required: ['duration'] }, { required: ['seconds'] }, { required: ['milliseconds'] }],
  },
  execute: async ({ config, signal, dryRun }) => {
    const given = Object.entries(config).flatMap(([unit, amount]) => {
      if (typeof amount !== 'number' && typeof amount !== 'string') return []
      return unit === 'milliseconds' ? Number(amount) : (parseDuration(amount) ?? Number.NaN)
    })
    const [duration = Number.NaN] = given
    if (!(duration >= 0 && duration <= LIMIT)) throw new NodeError('config_invalid', 'delay takes 0 to 24 hours')
    if (!dryRun) await wait(duration, undefined, { signal })
    return { output: { delayed: true, duration } }
  },
}
