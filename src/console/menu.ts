/** The section that an entry stands for, where it leads, and its name. */
export type MenuEntry = readonly [section: string, path: string, label: string]

const MEMORY: readonly MenuEntry[] = [
  ['home', '/ui/', 'Home'],
  ['workspaces', '/ui/workspaces', 'Workspaces'],
  ['audit', '/ui/audit', 'Audit'],
  ['reference', '/ui/reference', 'API'],
  ['settings', '/ui/settings', 'Settings'],
]

const GATEWAY: readonly MenuEntry[] = [
  ['credentials', '/ui/gateway/credentials', 'Credentials'],
  ['models', '/ui/gateway/models', 'Models'],
  ['playground', '/ui/gateway/playground', 'Playground'],
  ['usage', '/ui/gateway/usage', 'Usage'],
  ['keys', '/ui/gateway/keys', 'Keys'],
  ['audit', '/ui/gateway/audit', 'Audit'],
  ['settings', '/ui/gateway/settings', 'Settings'],
]

const KERNEL: readonly MenuEntry[] = [
  ['objectives', '/ui/kernel/objectives', 'Objectives'],
  ['runs', '/ui/kernel/runs', 'Runs'],
  ['approvals', '/ui/kernel/approvals', 'Approvals'],
  ['activity', '/ui/kernel/activity', 'Activity'],
  ['deployments', '/ui/kernel/deployments', 'Deployments'],
]

export const memoryMenu = ({
  hasGateway,
  hasKernel,
}: {
  hasGateway: boolean
  hasKernel: boolean
}): readonly MenuEntry[] => [
  ...MEMORY,
  ...(hasKernel ? KERNEL : []),
  ...(hasGateway ? [['gateway', '/ui/gateway/', 'Gateway'] as const] : []),
]

export const gatewayMenu = (hasMemory: boolean): readonly MenuEntry[] =>
  hasMemory ? [...GATEWAY, ['home', '/ui/', 'Memory']] : GATEWAY
