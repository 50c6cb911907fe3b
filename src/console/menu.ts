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

export const memoryMenu = (hasGateway: boolean): readonly MenuEntry[] =>
  hasGateway ? [...MEMORY, ['gateway', '/ui/gateway/', 'Gateway']] : MEMORY

export const gatewayMenu = (hasMemory: boolean): readonly MenuEntry[] =>
  hasMemory ? [...GATEWAY, ['home', '/ui/', 'Memory']] : GATEWAY
