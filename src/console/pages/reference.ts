import { apiRoutes } from '../../memory/routes/index.ts'
import { openApiDocument } from '../../memory/routes/openapi.ts'
import { listWorkspaces } from '../../memory/store/workspaces.ts'
import { readReference, type Parameter, type Reference } from '../reference/document.ts'
import type { Console } from '../settings.ts'
import type { Page, PageRequest } from './page.ts'

const CHOICES = 200
/** The console says itself who writes and in which workspace. */
const OWN_HEADERS = ['Mem-Agent-Id', 'Mem-Identity-Provider', 'Mem-Identity-Proof', 'X-Mem-Workspace']

/** The API document, made when it is first asked for. */
export class ApiReference {
  readonly #console: Console
  #document: unknown
  #reference: Reference | undefined

  constructor(console: Console) {
    this.#console = console
  }

  get document(): unknown {
    return (this.#document ??= openApiDocument(apiRoutes(this.#console.service)))
  }

  get reference(): Reference {
    return (this.#reference ??= readReference(this.document))
  }
}

/** Every operation of the API with a form to send it. */
export async function referencePage({ service }: Console, api: ApiReference, { query }: PageRequest): Promise<Page> {
  const workspaces = await listWorkspaces(service.seams.metadata, CHOICES, undefined, undefined)
  return {
    template: './reference',
    title: 'API',
    data: {
      ...api.reference,
      workspaces: workspaces.items,
      ws: query('ws') ?? workspaces.items[0]?.id ?? '',
      isAsked: ({ name }: Parameter) => !OWN_HEADERS.includes(name),
    },
  }
}
