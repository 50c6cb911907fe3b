import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

/** Makes the refusal of a method; `params` are those of the path. */
type Refuse = (request: FastifyRequest, allow: string, params: readonly string[]) => Error

interface KnownPath {
  pattern: RegExp
  /** How many of its parts vary. */
  parts: number
  methods: ReadonlySet<string>
  refuse: Refuse
}

declare module 'fastify' {
  interface FastifyInstance {
    /** Paths that there are, whatever their methods. */
    knownPaths: KnownPath[]
  }
}

/**
 * Answers 405 with `Allow` where a path is known and its method is not. No routes of their own: some thirty methods for
 * each path took 40 ms of every start.
 */
export function answerOtherMethods(app: FastifyInstance): void {
  app.decorate('knownPaths', [])
  app.addHook('preHandler', async (request, reply) => {
    if (request.is404) refuseMethod(app.knownPaths, request, reply)
  })
}

/** Every path hands the methods that it does not have to `refuse`, with what `Allow` should say. */
export function mountOtherMethods(
  app: FastifyInstance,
  routes: readonly { method: string; path: string }[],
  refuse: Refuse,
): void {
  const byPath = new Map<string, Set<string>>()
  for (const { method, path } of routes) {
    const methods = byPath.get(path) ?? new Set()
    byPath.set(path, methods.add(method))
    if (method === 'GET') methods.add('HEAD')
  }
  const paths = [...byPath].map(([path, methods]) => ({
    path,
    known: { ...patternOf(app.prefix + path), methods, refuse },
  }))
  for (const { path, known } of paths) {
    const example = app.prefix + path.replace(PARTS, (found) => (found === '::' ? ':' : 'x'))
    // `/edges/:batch` has no DELETE; `/edges/:id` has one, and would take it.
    const others = paths.filter(({ known: other }) => other !== known && paramsOf(other, example))
    const taken = new Set(
      others.flatMap(({ known: other }) => [...other.methods]).filter((one) => !known.methods.has(one)),
    )
    if (taken.size === 0) continue
    app.route({ method: [...taken], url: path, handler: (request, reply) => refuseKnown(known, [], request, reply) })
  }
  app.knownPaths.push(...paths.map(({ known }) => known))
  // As the router does: a part that is written out comes before one that may be anything.
  app.knownPaths.sort((a, b) => a.parts - b.parts)
}

function refuseMethod(paths: readonly KnownPath[], request: FastifyRequest, reply: FastifyReply): void {
  const [path = ''] = request.url.split('?', 1)
  for (const known of paths) {
    const params = paramsOf(known, path)
    if (params) refuseKnown(known, params, request, reply)
  }
}

function refuseKnown(known: KnownPath, params: readonly string[], request: FastifyRequest, reply: FastifyReply): never {
  const allow = [...known.methods].join(', ')
  const refusal = known.refuse(request, allow, params)
  reply.header('Allow', allow)
  throw refusal
}

/** What the parts that vary are in a path; undefined where it is another. */
function paramsOf({ pattern }: KnownPath, path: string): string[] | undefined {
  const [match, ...params] = pattern.exec(path) ?? []
  if (match === undefined || params.some((param) => param.includes('/'))) return undefined
  return params.map((param) => decodeURIComponent(param))
}

const PARTS = /::|:\w+(?:\((?:\^)?([^)]*)\))?|[.*+?^${}()|[\]\\]/g

/** `/memories/:id(^[^:@]+)::append` as a pattern, with a group for each part that varies. */
function patternOf(path: string): Pick<KnownPath, 'pattern' | 'parts'> {
  let parts = 0
  const source = path.replace(PARTS, (found, kind: string | undefined) => {
    if (found === '::') return ':'
    if (!found.startsWith(':')) return `\\${found}`
    parts++
    return `(${kind ?? '[^/]*?'})`
  })
  return { pattern: new RegExp(`^${source}$`), parts }
}
