import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parse } from 'yaml'
import * as z from 'zod'
import { errorText } from '../../base/errors.ts'
import { kubeconfigFiles } from '../../config/kubernetes.ts'
import { invalid, readCredential, readToken, type Connection } from './connection.ts'

const text = z.string().optional()

const cluster = z.looseObject({
  server: z.string(),
  'certificate-authority': text,
  'certificate-authority-data': text,
  'insecure-skip-tls-verify': z.boolean().optional(),
  'tls-server-name': text,
  'proxy-url': text,
})
const user = z.looseObject({
  token: text,
  tokenFile: text,
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
})
const context = z.looseObject({ cluster: z.string(), user: z.string(), namespace: text })

const list = <T extends z.ZodType<{ name: string }>>(entry: T) => z.array(entry).nullish()

const kubeconfig = z.looseObject({
  'current-context': text,
  clusters: list(z.looseObject({ name: z.string(), cluster })),
  users: list(z.looseObject({ name: z.string(), user: user.nullish() })),
  contexts: list(z.looseObject({ name: z.string(), context })),
})
type Kubeconfig = z.output<typeof kubeconfig>

/** An entry with the directory that its relative paths start from. */
interface Found<T> {
  readonly entry: T
  readonly directory: string
}

/** Would change who asks, or who is asked, if they were passed over. */
const REFUSED_OF_USER: Readonly<Record<string, string>> = {
  exec: 'programs are not run for credentials: give a token, such as that of `kubectl create token`',
  'auth-provider': 'auth providers are not supported: give a token, such as that of `kubectl create token`',
  username: 'API servers take no passwords any more: give a token',
  as: 'impersonation is not supported: give a token of that user',
  'as-uid': 'impersonation is not supported: give a token of that user',
  'as-groups': 'impersonation is not supported: give a token of that user',
}

/**
 * The connection of a context; of several files the first that has a name wins.
 * @throws NodeError config_invalid
 */
export function fromKubeconfig(place: true | string, contextName?: string): Connection {
  const paths = place === true ? kubeconfigFiles() : [place]
  const files = paths.filter((path) => place !== true || existsSync(path)).map(read)
  if (files.length === 0) throw invalid(`no kubeconfig at ${paths.join(', ')}`)
  const where = paths.join(', ')
  const name = contextName ?? files.map(({ config }) => config['current-context']).find((each) => each)
  if (name === undefined) throw invalid(`${where} has no current context: name one`)

  const find = <T extends { name: string }>(
    wanted: string,
    entries: (config: Kubeconfig) => T[] | null | undefined,
  ) => {
    for (const { config, directory } of files) {
      const entry = entries(config)?.find((each) => each.name === wanted)
      if (entry) return { entry, directory }
    }
    throw invalid(`${where} has nothing named "${wanted}"`)
  }
  const chosen = find(name, ({ contexts }) => contexts).entry.context
  const { entry, directory } = find(chosen.cluster, ({ clusters }) => clusters)
  const target = entry.cluster
  const asking = find(chosen.user, ({ users }) => users)
  if (target['insecure-skip-tls-verify']) {
    throw invalid(`cluster "${chosen.cluster}" skips the check of its certificate: name its certificate authority`)
  }
  if (target['proxy-url'] !== undefined) throw invalid(`cluster "${chosen.cluster}": proxy-url is not supported`)
  const { cert, key, token } = credentials({ entry: asking.entry.user ?? {}, directory: asking.directory }, chosen.user)
  return {
    server: target.server,
    namespace: chosen.namespace ?? 'default',
    ca: pem({ entry: target, directory }, 'certificate-authority'),
    serverName: target['tls-server-name'],
    cert,
    key,
    token,
  }
}

function credentials(found: Found<z.output<typeof user>>, name: string): Pick<Connection, 'cert' | 'key' | 'token'> {
  const { entry, directory } = found
  for (const [field, reason] of Object.entries(REFUSED_OF_USER)) {
    if (entry[field] !== undefined) throw invalid(`user "${name}" has "${field}": ${reason}`)
  }
  const { token, tokenFile } = entry
  return {
    cert: pem(found, 'client-certificate'),
    key: pem(found, 'client-key'),
    token: () => (tokenFile === undefined ? Promise.resolve(token) : readToken(resolve(directory, tokenFile))),
  }
}

/** Base64 in the file itself wins over the name of another file. */
function pem({ entry, directory }: Found<Readonly<Record<string, unknown>>>, name: string): string | undefined {
  const [data, file] = [entry[`${name}-data`], entry[name]]
  if (typeof data === 'string') return Buffer.from(data, 'base64').toString()
  return typeof file === 'string' ? readCredential(resolve(directory, file)) : undefined
}

function read(path: string): { config: Kubeconfig; directory: string } {
  try {
    return { config: kubeconfig.parse(parse(readCredential(path)) ?? {}), directory: dirname(resolve(path)) }
  } catch (error) {
    const reason = error instanceof z.ZodError ? z.prettifyError(error) : errorText(error)
    throw invalid(`${path} is no kubeconfig: ${reason}`)
  }
}
