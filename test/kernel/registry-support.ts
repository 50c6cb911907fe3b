import { expect } from 'vitest'
import type { Reply, ScopedApi } from './api.ts'

/** What agents and teams are made with. */

export const BY_USER = { actorType: 'user', actorId: 'una' }
export const BY_AGENT = { actorType: 'agent', actorId: 'ana' }

export const manifestOf = (fields: object = {}): Record<string, unknown> & { id: string; version: string } => ({
  id: 'ana',
  version: '1.0.0',
  displayName: 'Ana',
  purpose: 'Counts stars',
  systemPrompt: 'Count the stars.',
  authority: { maximumRisk: 'write', maxConcurrentRuns: 2, allowedSkillIds: ['mail'] },
  skillRequirements: [{ skillId: 'mail' }, { skillId: 'web', optional: true }],
  ...fields,
})

export const deploymentOf = (fields: object = {}): Record<string, unknown> & { id: string } => ({
  id: 'ana',
  environment: 'production',
  ...fields,
})

let keys = 0

/** Under a key of its own when none is given. */
export const install = (
  api: ScopedApi,
  { manifest = {}, deployment = {}, ...more }: { manifest?: object; deployment?: object; [more: string]: unknown } = {},
  key = `install ${++keys}`,
): Promise<Reply> =>
  api.post(
    '/agent-installations',
    { ...BY_USER, manifest: manifestOf(manifest), deployment: deploymentOf(deployment), ...more },
    key,
  )

/** Registers versions by installing one after the other: the last runs. Gives the revision of the deployment. */
export async function installVersions(
  api: ScopedApi,
  versions: readonly string[],
  manifest: object = {},
): Promise<number> {
  let revision = 0
  for (const version of versions) {
    const { status, body } = await install(api, { manifest: { ...manifest, version } })
    expect([version, status, body.error]).toEqual([version, 201, undefined])
    revision = body.deployment.revision
  }
  return revision
}

export const teamOf = (fields: object = {}): Record<string, unknown> & { id: string; version: string } => ({
  id: 'crew',
  version: '1.0.0',
  displayName: 'Crew',
  purpose: 'Sail',
  roles: [
    { id: 'lead', displayName: 'Lead', purpose: 'Leads', minimumMembers: 1, maximumMembers: 1 },
    {
      id: 'hand',
      displayName: 'Hand',
      purpose: 'Works',
      skillGrants: [{ skillId: 'mail', skillVersion: '1.0.0', allowedActions: ['send'], maximumRisk: 'write' }],
    },
  ],
  coordination: { mode: 'peer' },
  delegation: {
    maximumDepth: 2,
    maximumConcurrent: 3,
    allowPeerDelegation: true,
    requireAcceptance: false,
    requireCompletionReview: false,
    escalateOnDisagreement: false,
  },
  approvals: { maximumRisk: 'external' },
  ...fields,
})

export const LEAD = { id: 'm1', roleId: 'lead', agentDeploymentId: 'ana' }

export const teamDeploymentOf = (fields: object = {}): object => ({
  id: 'crew',
  definitionId: 'crew',
  activeVersion: '1.0.0',
  roster: [LEAD],
  ...fields,
})

/** Of what the kernel says no to: its status, and its words. */
export const refusal = ({ status, body }: Reply): [number, string] => [status, String(body.error)]
