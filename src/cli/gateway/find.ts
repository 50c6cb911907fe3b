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

/** The record of a name, in its case before any other, or of an id. @throws CliError when there is none, or when several are meant */
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
  const named = namedLike(items, text)
  const numbered = items.find(({ id }) => String(id) === text)
  const other = named.find(({ id }) => id !== numbered?.id)
  if (numbered && other) {
    const hint = `Say '${numbered.name}' for the one, ${other.id} for the other.`
    throw usageError(`'${text}' is the id of ${one} '${numbered.name}' and the name of ${one} ${other.id}`, hint)
  }
  const [found = numbered, ...others] = named
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

/** Groups and keys respect case; who writes a name otherwise means the one that differs in nothing else. */
function namedLike<Item extends { name: string }>(items: readonly Item[], text: string): readonly Item[] {
  const exact = items.filter(({ name }) => name === text)
  return exact.length > 0 ? exact : items.filter(({ name }) => name.toLowerCase() === text.toLowerCase())
}

/** The path of a record. */
export const at = ({ path: { literals } }: { readonly path: Path }, id: number, verb = ''): Path => ({
  literals: [`${literals.join('')}/`, verb && `/${verb}`],
  segments: [String(id)],
})
