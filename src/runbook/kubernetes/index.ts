import { systemClock, type Clock } from '../../base/clock.ts'
import type { OrchestratorClient } from '../ports.ts'
import type { KubernetesOptions } from './connection.ts'

export type { KubernetesOptions } from './connection.ts'

/**
 * A client of a Kubernetes API server; its parts are loaded, and its credentials read, with the first call. Its methods
 * throw an error with the HTTP `status`, or a NodeError: `config_invalid` for options that describe no connection,
 * `network_error`, `tls_failed`. Contract: runbook.md 6.9, 11.
 */
export function createKubernetesClient(options: KubernetesOptions, clock: Clock = systemClock): OrchestratorClient {
  let opened: Promise<OrchestratorClient> | undefined
  const open = async (): Promise<OrchestratorClient> => (await import('./client.ts')).openClient(options, clock)
  const client = async (): Promise<OrchestratorClient> => {
    opened ??= open()
    try {
      return await opened
    } catch (error) {
      // what is missing may be there at the next call
      opened = undefined
      throw error
    }
  }
  return {
    get: async (...args) => (await client()).get(...args),
    list: async (...args) => (await client()).list(...args),
    logs: async (...args) => (await client()).logs(...args),
    events: async (...args) => (await client()).events(...args),
    restart: async (...args) => (await client()).restart(...args),
    scale: async (...args) => (await client()).scale(...args),
    patch: async (...args) => (await client()).patch(...args),
    delete: async (...args) => (await client()).delete(...args),
    runJob: async (...args) => (await client()).runJob(...args),
  }
}
