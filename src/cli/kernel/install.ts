import { canonicalJson } from '../../base/canonical-json.ts'
import type {
  Actor,
  AgentInstallation,
  Binding,
  BindingContent,
  Installed,
  Owner,
  RolloutStatus,
} from '../../client/kernel/kernel-types.ts'
import { KernelApiError, type KernelClient } from '../../client/index.ts'
import { once } from './connect.ts'

/** What a file describes; the server looks at the fields. */
export interface Installable extends Pick<AgentInstallation, 'manifest' | 'deployment' | 'reason'> {
  bindings?: (BindingContent & { id: string })[]
}

const DEFAULTS = { allowedActions: [], enablePrompt: false, argumentRestrictions: {}, credentials: {}, config: {} }

/**
 * Installs an agent and binds its skills. While a binding is not as the file says the agent takes no runs, so that none
 * begins before its skills are there; the same again goes on where an earlier command was cut off. Bindings that the file does not
 * name stay.
 */
export async function installWithSkills(
  client: KernelClient,
  { bindings, ...file }: Installable,
  by: Actor,
  key: string | undefined,
): Promise<Installed> {
  if (!bindings) return client.agents.install({ ...file, ...by }, once(key))
  const { deployment, reason = 'installed at a command line' } = file
  const owner: Owner = { type: 'agent', id: deployment.id }
  const status = await statusOf(client, deployment.id)
  const install = (rolloutStatus: 'pending' | 'active' | 'paused', idempotencyKey?: string): Promise<Installed> =>
    client.agents.install({ ...file, ...by, deployment: { ...deployment, rolloutStatus } }, once(idempotencyKey))
  const isNew = status === undefined || status === 'pending'
  const known = status === undefined ? [] : (await client.skills.bindings(owner)).items
  const missing = bindings.filter((wanted) => !known.some((binding) => isAs(binding, wanted)))
  if (missing.length > 0) await install(isNew ? 'pending' : 'paused')
  for (const { id, ...binding } of missing) {
    const expectedRevision = known.find((one) => one.id === id)?.revision ?? 0
    const actor = { type: by.actorType, id: by.actorId }
    await client.skills.put(owner, id, { binding, expectedRevision, actor, reason }, once())
  }
  return install(deployment.rolloutStatus ?? (status === 'paused' ? 'paused' : 'active'), key)
}

async function statusOf({ agents }: KernelClient, id: string): Promise<RolloutStatus | undefined> {
  try {
    return (await agents.get(id)).deployment.rolloutStatus
  } catch (error) {
    if (error instanceof KernelApiError && error.isNotFound()) return undefined
    throw error
  }
}

/** Whether nothing of it has to change. */
function isAs(binding: Binding, { sourceIdentity, ...wanted }: BindingContent & { id: string }): boolean {
  const expected = { ...DEFAULTS, ...wanted, ...(sourceIdentity !== undefined && { sourceIdentity }), disabled: false }
  const { deploymentId: _d, lifecycle: _l, scope: _s, revision: _r, createdAt: _c, updatedAt: _u, ...kept } = binding
  const { idempotencyKeyHash: _k, creationFingerprint: _f, ...content } = kept
  return canonicalJson(content) === canonicalJson(expected)
}
