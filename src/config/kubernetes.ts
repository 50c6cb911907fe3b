import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'

type Env = Readonly<Record<string, string | undefined>>

/** Where a pod finds its token, the certificate of the cluster and its namespace. */
export const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

/** The files of $KUBECONFIG, else ~/.kube/config. */
export function kubeconfigFiles(env: Env = process.env): string[] {
  const named = (env['KUBECONFIG'] ?? '').split(delimiter).filter((file) => file !== '')
  return named.length > 0 ? named : [join(env['HOME'] ?? homedir(), '.kube/config')]
}

/** The URL of the API server as pods are told it; undefined outside a cluster. */
export function inClusterServer(env: Env = process.env): string | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = env
  if (host === undefined || host === '') return undefined
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}`
}
