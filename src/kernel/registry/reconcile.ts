import { skillOf } from '../actions/resolve.ts'
import { BY_KERNEL, makeChange, type Change } from '../change.ts'
import type { KernelContext } from '../context.ts'
import type { Scope } from '../model/fields.ts'
import type { SkillCatalog } from '../ports.ts'
import { listBindings, listBoundAgents, type KeptBinding } from '../store/bindings.ts'
import { agentDeployments } from '../store/deployments.ts'
import { lockRecord, saveRecord } from '../store/records.ts'
import { takesRuns } from './resolve.ts'

const AT_ONCE = 100

/**
 * Calls agents degraded while a skill that is bound to them is not there, and active again once all are.
 * @returns how many changed. Contract: kernel-1.md 11
 */
export async function reconcileDeployments(context: KernelContext, scope: Scope): Promise<number> {
  const catalog = context.actions?.catalog
  if (!catalog) return 0
  let changed = 0
  let after = ''
  for (;;) {
    const page = await listBoundAgents(context.store.database, scope, { after, limit: AT_ONCE })
    for (const { id, status, bindings } of page) {
      if (stateWith(catalog, bindings) === status) continue
      await makeChange(context, scope, BY_KERNEL, (change) => followSkills(change, catalog, id))
      changed++
    }
    const last = page.at(-1)
    if (!last || page.length < AT_ONCE) return changed
    after = last.id
  }
}

const missing = (catalog: SkillCatalog, bindings: readonly KeptBinding[]): KeptBinding[] =>
  bindings.filter((binding) => !skillOf(catalog, binding))

const stateWith = (catalog: SkillCatalog, bindings: readonly KeptBinding[]): 'active' | 'degraded' =>
  missing(catalog, bindings).length > 0 ? 'degraded' : 'active'

/** Looks again under the lock: others may have been first. */
async function followSkills(change: Change, catalog: SkillCatalog, id: string): Promise<void> {
  const { tx, scope, now } = change
  const deployment = await lockRecord(tx, agentDeployments, scope, id)
  if (!takesRuns(deployment)) return
  const bindings = await listBindings(tx, scope, { family: 'agent', deploymentId: id }, { enabled: true })
  const rolloutStatus = stateWith(catalog, bindings)
  if (rolloutStatus === deployment.rolloutStatus) return
  await saveRecord(tx, agentDeployments, { ...deployment, rolloutStatus }, now)
  const bindingIds = missing(catalog, bindings).map((binding) => binding.id)
  change.report({
    agentId: id,
    eventType: `skill.deployment_${rolloutStatus}`,
    severity: rolloutStatus === 'degraded' ? 'warning' : 'info',
    summary:
      rolloutStatus === 'degraded' ? `Agent ${id} lacks skills that are bound to it` : `Agent ${id} has all its skills`,
    payload: { from: deployment.rolloutStatus, to: rolloutStatus, bindingIds },
  })
}
