import type { Component } from './capability-table.ts'
import type { KernelContext } from './context.ts'

/** What an embedder gives beside store, log and ids. */
export type KernelParts = Omit<KernelContext, 'store' | 'newId' | 'log' | 'endings' | 'hint'>

/** Every store has them. */
const OF_STORES: readonly Component[] = [
  'runbook execution audit store',
  'project store',
  'collaboration store',
  'agent registry store',
  'compilation record store',
  'team registry store',
]

/** What of the capability table these parts make; runs are taken where somebody dispatches them. Contract: kernel-1.md 17 */
export const componentsOf = (parts: KernelParts, hasRunDispatcher: boolean): Component[] => [
  ...OF_STORES,
  ...(hasRunDispatcher ? (['run dispatcher'] as const) : []),
  ...(parts.approvalAuthorizer ? (['approval authorizer'] as const) : []),
  ...(parts.actions ? (['skill catalog', 'skill binding store'] as const) : []),
]
