import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config/load.ts'
import { inClusterServer, SERVICE_ACCOUNT } from '../../config/kubernetes.ts'
import { createNodeRegistry, type NodeRegistry } from '../../runbook/registry.ts'
import type { Io } from '../command.ts'

/** What `mem run` executes: in a pod with a service account `code` too. Contract: runbook.md 4.7. */
export async function runRegistry(
  { env }: Pick<Io, 'env'>,
  { image, namespace }: Config['runbook']['code'] = {},
  directory = SERVICE_ACCOUNT,
): Promise<NodeRegistry> {
  if (inClusterServer(env) === undefined || !existsSync(join(directory, 'token'))) return createNodeRegistry()
  const { createKubernetesClient } = await import('../../runbook/kubernetes/index.ts')
  return createNodeRegistry({
    codeRunner: createKubernetesClient({
      inCluster: directory,
      ...(image !== undefined && { image }),
      ...(namespace !== undefined && { namespace }),
    }),
  })
}
