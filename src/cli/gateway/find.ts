import { path, type Path } from '../../client/transport.ts'
import type { Alias, Credential, VirtualKey } from '../../gateway/model.ts'
import type { Context } from '../command.ts'
import { CliError, EXIT, usageError } from '../exit.ts'
import { callRest, type List, type SessionInput } from '../platform/rest.ts'

/** Records of one kind: where they lie, and how answers call them. */
interface Noun<Plural extends string> {
  readonly path: Path
  readonly plural: Plural
  readonly one: string
}

export const CREDENTIALS: Noun<'credentials'> = {
  path: path`/rest/v1/llm-gateway/credentials`,
  plural: 'credentials',
  one: 'credential',
}
export const GROUPS: Noun<'model_groups'> = {
  path: path`/rest/v1/llm-gateway/model-groups`,
  plural: 'model_groups',
  one: 'group',
}
export const KEYS: Noun<'keys'> = { path: path`/rest/v1/llm-gateway/keys`, plural: 'keys', one: 'key' }

/** What each noun's records are. */
interface Records {
  credentials: Credential
  model_groups: Alias
  keys: VirtualKey
}

/** All records that the caller may see, page by page. */
export async function listAll<Plural extends keyof Records>(
  context: Context,
  input: SessionInput,
  { path: where, plural }: Noun<Plural>,
): Promise<Records[Plural][]> {
  const found: Records[Plural][] = []
  for (let after: string | undefined; after !== '';) {
    const query = { limit: 200, after_id: after }
    const call = { method: 'GET', path: where, query }
    const page = await callRest<List<Plural, Records[Plural]>>(context, input, call, plural)
    const { [plural]: items, next_after_id: next } = page
    found.push(...items)
    after = next
  }
  return found
}

/** The record of a name, in any case, or of an id. @throws CliError when there is none, or when several have the name */
export async function find<Plural extends keyof Records>(
  context: Context,
  input: SessionInput,
  noun: Noun<Plural>,
  text: string,
): Promise<Records[Plural]> {
  return pick(await listAll(context, input, noun), noun, text)
}

/** As `find`, among records that are known. */
export function pick<Item extends { id: number; name: string }>(
  items: readonly Item[],
  { one }: { readonly one: string },
  text: string,
): Item {
  const named = items.filter(({ name }) => name.toLowerCase() === text.toLowerCase())
  const [found = items.find(({ id }) => String(id) === text), ...others] = named
  if (others.length > 0) {
    throw usageError(`several are named '${text}'`, `Say the id: ${named.map(({ id }) => id).join(', ')}.`)
  }
  if (found) return found
  const known = items.map(({ id, name }) => `${name} (${id})`).slice(0, 20)
  throw new CliError(
    EXIT.notFound,
    `there is no ${one} '${text}'`,
    known.length > 0 ? `There are: ${known.join(', ')}.` : `There is no ${one} yet.`,
  )
}

/** The path of a record. */
export const at = ({ path: { literals } }: { readonly path: Path }, id: number, verb = ''): Path => ({
  literals: [`${literals.join('')}/`, verb && `/${verb}`],
  segments: [String(id)],
})
