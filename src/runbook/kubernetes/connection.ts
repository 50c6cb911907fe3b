import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errorText } from '../../base/errors.ts'
import { inClusterServer, SERVICE_ACCOUNT } from '../../config/kubernetes.ts'
import { NodeError } from '../errors.ts'

/** Where an API server is, whom to trust and who asks. */
export interface Connection {
  readonly server: string
  /** Of objects that name none. */
  readonly namespace: string
  /** PEM; the system's authorities when absent. */
  readonly ca?: string | undefined
  /** PEM of a client certificate and its key. */
  readonly cert?: string | undefined
  readonly key?: string | undefined
  /** The name in the server's certificate, when it is not the host's. */
  readonly serverName?: string | undefined
  /** Read for each request, because tokens in files are replaced before they end. */
  token(): Promise<string | undefined>
}

type Place =
  | {
      /** The service account of the pod that this runs in; or a directory with `token`, `ca.crt`, `namespace`. */
      readonly inCluster: true | string
    }
  | {
      readonly server: string
      readonly token?: string
      /** PEM. */
      readonly ca?: string
      /** PEM of a client certificate and its key. */
      readonly cert?: string
      readonly key?: string
    }
  | {
      /** A kubeconfig file, or those of $KUBECONFIG, else ~/.kube/config. */
      readonly kubeconfig: true | string
      /** The current one when absent. */
      readonly context?: string
    }

/** How `createKubernetesClient` finds its cluster. Contract: runbook.md 11. */
export type KubernetesOptions = Place & {
  readonly namespace?: string
  /** Of one request, 30 s unless given. Streams have it for each silence. */
  readonly timeoutMs?: number
  /** Runs `code` nodes that name none. */
  readonly image?: string
}

/** @throws NodeError config_invalid when the options or their files don't describe a usable connection */
export async function connectionOf(options: KubernetesOptions): Promise<Connection> {
  const connection = await described(options)
  const { protocol, hostname } = serverUrl(connection.server)
  const hasSecret = connection.key !== undefined || (await connection.token()) !== undefined
  if (protocol === 'http:' && hasSecret && !/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)) {
    throw invalid(`credentials are not sent to ${hostname} without TLS: use https`)
  }
  return options.namespace === undefined ? connection : { ...connection, namespace: options.namespace }
}

async function described(options: KubernetesOptions): Promise<Connection> {
  if ('inCluster' in options) return inCluster(options.inCluster)
  if ('kubeconfig' in options) {
    const { fromKubeconfig } = await import('./kubeconfig.ts')
    return fromKubeconfig(options.kubeconfig, options.context)
  }
  const { server, ca, cert, key, token } = options
  return { server, ca, cert, key, namespace: 'default', token: () => Promise.resolve(token) }
}

function inCluster(place: true | string): Connection {
  const directory = place === true ? SERVICE_ACCOUNT : place
  const server = inClusterServer()
  if (server === undefined) throw invalid('KUBERNETES_SERVICE_HOST is not set: this is no pod of a cluster')
  return {
    server,
    ca: readCredential(join(directory, 'ca.crt')),
    namespace: readCredential(join(directory, 'namespace')).trim(),
    token: () => readToken(join(directory, 'token')),
  }
}

function serverUrl(server: string): URL {
  const url = URL.canParse(server) ? new URL(server) : undefined
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url
  throw invalid(`the API server "${server}" is no http or https URL`)
}

/** Read anew for each call: a cluster renews it. @throws NodeError config_invalid */
export async function readToken(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch (error) {
    throw invalid(`cannot read the token: ${errorText(error)}`)
  }
}

/** @throws NodeError config_invalid */
export function readCredential(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw invalid(`cannot read the credentials: ${errorText(error)}`)
  }
}

export const invalid = (message: string): NodeError => new NodeError('config_invalid', message)
