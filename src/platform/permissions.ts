import type { MemberRole, Permission, User } from './model.ts'

const OF_ROLE: Readonly<Record<MemberRole, readonly Permission[]>> = {
  reader: ['project:read'],
  developer: ['project:read', 'project:write'],
  manager: ['project:read', 'project:write', 'project:settings'],
}

/** What a user may do in a project of the own organization; an admin is manager everywhere. Contract: git-host.md 2.2. */
export function permissionsOf({ role }: User, membership: MemberRole | null): Permission[] {
  const effective = role === 'admin' ? 'manager' : membership
  return effective === null ? [] : [...OF_ROLE[effective]]
}
