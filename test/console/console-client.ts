/** What the console answered, its body as text. */
export interface Answer {
  status: number
  headers: Headers
  text: string
}

export type Fields = Readonly<Record<string, string | Blob | undefined>>

/** A browser without scripts: keeps cookies, and takes the token of its last page along. */
export interface ConsoleClient {
  cookies: Map<string, string>
  get(path: string, headers?: Record<string, string>): Promise<Answer>
  /** Posts a form with the token; multipart when a field is a file. */
  post(path: string, fields: Fields, headers?: Record<string, string>): Promise<Answer>
  /** The token that the pages carry. */
  token(): Promise<string>
}

export function createClient(url: string): ConsoleClient {
  const cookies = new Map<string, string>()
  const send = async (path: string, init: RequestInit, headers: Record<string, string> = {}): Promise<Answer> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const response = await fetch(url + path, {
      ...init,
      redirect: 'manual',
      headers: { ...(cookie !== '' && { cookie }), ...headers },
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (/max-age=0|expires=thu, 01 jan 1970/i.test(line)) cookies.delete(name)
      else cookies.set(name, value)
    }
    return { status: response.status, headers: response.headers, text: await response.text() }
  }
  const client: ConsoleClient = {
    cookies,
    get: (path, headers) => send(path, {}, headers),
    post: async (path, fields, headers) => {
      const token = path === '/ui/login' ? undefined : await client.token()
      return send(path, { method: 'POST', body: bodyOf({ csrf_token: token, ...fields }) }, headers)
    },
    token: async () => tokenIn((await send('/ui/workspaces', {})).text),
  }
  return client
}

export const tokenIn = (html: string): string => /name="csrf_token" value="([^"]+)"/.exec(html)?.[1] ?? ''

function bodyOf(fields: Fields): FormData | URLSearchParams {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined)
  const isMultipart = given.some(([, value]) => value instanceof Blob)
  const body = isMultipart ? new FormData() : new URLSearchParams()
  for (const [name, value] of given) {
    if (typeof value === 'string') body.append(name, value)
    else if (value && body instanceof FormData) body.append(name, value)
  }
  return body
}

/** A client that signed in. */
export async function signIn(url: string, key: string): Promise<ConsoleClient> {
  const client = createClient(url)
  await client.post('/ui/login', { api_key: key })
  return client
}

/** The messages of an event stream. */
export const messagesOf = (text: string): Record<string, unknown>[] =>
  text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => JSON.parse(event.slice(6)))
