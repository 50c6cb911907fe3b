import type { Queryable } from '../../database/database.ts'
import type { AgentDeployment } from '../model/deployment.ts'
import type { Scope } from '../model/fields.ts'
import type { Run } from '../model/run.ts'
import { listDeployed, type Deployed } from '../store/deployments.ts'
import { scopeKey } from '../store/scope-key.ts'
import { executorOf } from '../store/slots.ts'

/** Whether runs are claimed for a deployment in this state. */
export const takesRuns = ({ rolloutStatus }: Pick<AgentDeployment, 'rolloutStatus'>): boolean =>
  rolloutStatus === 'active' || rolloutStatus === 'degraded'

const asked = new WeakMap<Queryable, Map<string, Promise<Deployed<'agent'> | undefined>>>()

/**
 * The deployment that executes a run, with its active definition; undefined where the run names none, or where it is absent,
 * pending, paused or retired. Runs that ask for the same one at the same time share what is read. Contract: kernel-1.md 6.4, 11
 */
export async function resolveDeployment(db: Queryable, scope: Scope, run: Run): Promise<Deployed<'agent'> | undefined> {
  const id = executorOf(run)
  if (id === undefined) return undefined
  const reads = asked.get(db) ?? new Map<string, Promise<Deployed<'agent'> | undefined>>()
  asked.set(db, reads)
  const key = `${scopeKey(scope)} ${id}`
  let read = reads.get(key)
  if (!read) {
    read = Promise.resolve().then(async () => {
      reads.delete(key) // who comes from now on sees what is changed from now on
      const [deployed] = await listDeployed(db, 'agent', scope, { ids: [id] })
      return deployed && takesRuns(deployed.deployment) ? deployed : undefined
    })
    reads.set(key, read)
  }
  return read
}
