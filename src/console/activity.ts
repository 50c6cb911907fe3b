import { setTimeout as delay } from 'node:timers/promises'
import { followEntries } from '../memory/activity.ts'
import type { Console } from './settings.ts'
import { event } from './stream.ts'
import { renderFragment } from './view.ts'

const INTERVAL_MS = 1000
/** Proxies end a connection that is silent for long. */
const HEARTBEAT = 15

/** What happens, as it happens: each ledger entry as the row that the home page shows. Contract: memory.md 14. */
export async function* activity({ service, clock }: Console, signal: AbortSignal): AsyncGenerator<string> {
  const next = followEntries(service.seams.ledger)
  await next()
  yield ': following\n\n'
  for (let silent = 0; !signal.aborted; silent++) {
    for (const entry of await next()) {
      silent = 0
      yield event(renderFragment('./partials/activity', { entry, names: new Map() }, clock.now()))
    }
    if (silent % HEARTBEAT === HEARTBEAT - 1) yield ': still here\n\n'
    await delay(INTERVAL_MS, undefined, { signal }).catch(() => undefined)
  }
}
