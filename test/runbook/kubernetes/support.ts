import { onTestFinished } from 'vitest'
import { createKubernetesClient } from '../../../src/runbook/kubernetes/index.ts'
import { createNodeRegistry } from '../../../src/runbook/registry.ts'
import type { RunOptions } from '../../../src/runbook/run/options.ts'
import type { ReportNode } from '../../../src/runbook/run/report.ts'
import { KubernetesApi } from '../../support/kubernetes/api.ts'
import type { ApiObject } from '../../support/kubernetes/objects.ts'
import { attributes } from '../nodes/recorder.ts'
import { node, run } from '../support.ts'

/** A cluster for one test. */
export async function cluster(): Promise<KubernetesApi> {
  const api = await KubernetesApi.start()
  onTestFinished(() => api.stop())
  return api
}

export const NOW = Date.UTC(2026, 0, 2)

export const clientOf = ({ url, ca }: KubernetesApi, more: { timeoutMs?: number; namespace?: string } = {}) =>
  createKubernetesClient({ server: url, ca, token: 'token-1', ...more }, { now: () => NOW })

/** Runs one node against the cluster. */
export async function use(
  api: KubernetesApi,
  type: string,
  values: Record<string, unknown>,
  options: Partial<RunOptions> = {},
): Promise<ReportNode> {
  const registry = createNodeRegistry({ orchestrator: clientOf(api) })
  const report = await run(`node ${type} n {\n${attributes(values)}\n}`, { registry, ...options })
  const found = node(report, 'n')
  if (!found) throw new Error('no node')
  return JSON.parse(JSON.stringify(found)) as ReportNode
}

export const deployment = (name: string, fields: Partial<ApiObject> = {}): ApiObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace: 'default', labels: { app: name } },
  spec: { replicas: 1, template: { metadata: {}, spec: { containers: [{ name: 'main', image: 'a:1' }] } } },
  ...fields,
})
