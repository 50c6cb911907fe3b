import { membersAt, removals, splice, type Change, type Member } from '../relay/body.ts'
import { editMessages, mayHoldForeign, withoutForeign } from '../relay/message-edits.ts'
import type { Candidate } from '../routing/candidate.ts'

/** What is to change of a body besides what the kind wants. */
export interface BodyEdits {
  /** Where to say how much may be answered: every field of these that is there, else the first. */
  readonly cap?: { readonly fields: readonly string[]; readonly tokens: number } | undefined
  /** Usage is to be reported though the client did not ask. */
  readonly addUsage: boolean
  /** The path names no model, whatever it does else. */
  readonly modelInBody?: boolean | undefined
}

/**
 * The bytes of a request as a candidate of the same dialect takes them: the model's name, its kind's edits, and what is
 * asked for here are spliced in, nothing else changes. Contract: gateway.md 5.1, 5.2.
 */
export function editBody(
  body: Buffer,
  members: ReadonlyMap<string, Member>,
  { upstream: { edits, credential }, model, dialect }: Candidate,
  { cap, addUsage, modelInBody = edits.modelInBody }: BodyEdits,
): { readonly body: Buffer; readonly dropped: readonly string[] } {
  const named = members.get('model')
  const isForeign = dialect === 'anthropic' && mayHoldForeign(body)
  const wantsMore = cap !== undefined || addUsage || !modelInBody || isForeign || EDITED.has(credential.kind)
  if (!wantsMore && named && !named.earlier && edits.drop.length === 0)
    return { body: renamed(body, named, model), dropped: [] }
  const dropped = edits.drop.filter(
    (name) => members.has(name) && textOf(body, members.get(name) ?? NOTHING) !== 'null',
  )
  const removed = new Set<string>(edits.drop)
  const names = new Map<string, string>()
  for (const [from, to] of Object.entries(edits.rename)) {
    if (members.has(to)) removed.add(from)
    else names.set(from, to)
  }
  const texts = new Map<string, string>()
  if (modelInBody) texts.set('model', JSON.stringify(model))
  else removed.add('model')
  const changes: Change[] = []
  const added: string[] = []
  if (cap) {
    const present = cap.fields.filter((name) => members.has(name) && !removed.has(name))
    for (const name of present) {
      const asked = Number(textOf(body, members.get(name) ?? NOTHING))
      if (!(asked > 0 && asked <= cap.tokens)) texts.set(name, String(cap.tokens))
    }
    const [first = ''] = cap.fields
    if (present.length === 0) added.push(`${JSON.stringify(names.get(first) ?? first)}:${cap.tokens}`)
  }
  const options = members.get('stream_options')
  if (addUsage && !removed.has('stream_options')) {
    if (options) changes.push(usageChange(body, options))
    else added.push('"stream_options":{"include_usage":true}')
  }
  if (credential.kind === 'vertex' && dialect === 'anthropic' && !members.has('anthropic_version')) {
    added.push(`"anthropic_version":${JSON.stringify(credential.config['anthropic_version'])}`)
  }
  changes.push(...memberChanges(body, members, { removed, names, texts }))
  const messages = members.get('messages')
  const inner = messages && editMessages(body, messages.start, credential.kind)
  changes.push(...(inner?.changes ?? []), ...(messages && isForeign ? withoutForeign(body, messages.start) : []))
  if (changes.length === 0 && added.length === 0) return { body, dropped }
  return { body: splice(body, changes, added.join(',')), dropped: [...dropped, ...(inner?.dropped ?? [])] }
}

interface MemberEdits {
  readonly removed: ReadonlySet<string>
  /** New names. */
  readonly names: ReadonlyMap<string, string>
  /** New values, as JSON. */
  readonly texts: ReadonlyMap<string, string>
}

/** Of a name given twice a provider may read either: both change. */
function memberChanges(
  body: Buffer,
  members: ReadonlyMap<string, Member>,
  { removed, names, texts }: MemberEdits,
): Change[] {
  const changes: Change[] = []
  const all = [...members].flatMap(([name, member]) => repeats(member).map((each) => ({ name, member: each })))
  for (const { name, member } of all) {
    const [rename, text] = [names.get(name), texts.get(name)]
    if (removed.has(name)) continue
    if (rename !== undefined) {
      const value = text ?? textOf(body, member)
      changes.push({ start: member.at, end: member.end, text: `${JSON.stringify(rename)}:${value}` })
    } else if (text !== undefined && text !== textOf(body, member)) changes.push({ ...member, text })
  }
  if (all.some(({ name }) => removed.has(name))) {
    const inOrder = all.sort((a, b) => a.member.at - b.member.at)
    const gone = new Set(inOrder.flatMap(({ name, member }) => (removed.has(name) ? [member] : [])))
    const each = inOrder.map(({ member }) => member)
    changes.push(...removals(each, (member) => gone.has(member)))
  }
  return changes
}

const textOf = (body: Buffer, { start, end }: Member): string => body.toString('utf8', start, end)

/** Kinds whose bodies may change beyond the model's name. */
const EDITED: ReadonlySet<string> = new Set(['mistral', 'groq', 'vertex'])

/** Most requests change no more than this, and many not even this. */
function renamed(body: Buffer, named: Member, model: string): Buffer {
  if (stands(body, named, model)) return body
  const text = JSON.stringify(model)
  return body.toString('utf8', named.start, named.end) === text ? body : splice(body, [{ ...named, text }])
}

/** Whether a value is this text between its quotes; no where something is escaped, or beyond ASCII. */
function stands(body: Buffer, { start, end }: Member, text: string): boolean {
  if (end - start !== text.length + 2) return false
  for (let i = 0; i < text.length; i++) {
    const byte = body[start + 1 + i] ?? 0
    if (byte !== text.charCodeAt(i) || byte === BACKSLASH || byte > 0x7e) return false
  }
  return true
}

const BACKSLASH = 0x5c

const NOTHING: Member = { at: 0, start: 0, end: 0 }

const repeats = (member: Member): Member[] => [member, ...(member.earlier ? repeats(member.earlier) : [])]

/** `include_usage` in the options that are there. */
function usageChange(body: Buffer, { start, end }: Member): Change {
  const inside = membersAt(body, start)
  const asked = inside.findLast(([name]) => name === 'include_usage')?.[1]
  if (asked) return { ...asked, text: 'true' }
  if (inside.length === 0) return { start, end, text: '{"include_usage":true}' }
  return { start: start + 1, end: start + 1, text: '"include_usage":true,' }
}
