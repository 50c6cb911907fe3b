import { isMap } from '../../base/json.ts'
import { itemsAt, membersAt, skipSpace, skipValue } from '../relay/body.ts'

/** JSON that goes out as it came in: parsed, numbers of many digits and names that stand twice would be others. */
export class RawJson {
  readonly text: string

  /** @param text valid JSON */
  constructor(text: string) {
    this.text = text
  }

  /** For who writes by `JSON.stringify`, which has no place for a text. */
  toJSON(): unknown {
    return JSON.parse(this.text)
  }
}

/** `JSON.stringify` of plain values that puts `RawJson` in unparsed. */
export function writeJson(value: unknown): string {
  if (value instanceof RawJson) return value.text.replace(/\p{Surrogate}/gu, escaped)
  if (Array.isArray(value)) return `[${value.map(writeJson).join(',')}]`
  if (!isMap(value)) return JSON.stringify(value ?? null)
  let members = ''
  for (const [name, each] of Object.entries(value)) {
    if (each !== undefined) members += `${members === '' ? '' : ','}${JSON.stringify(name)}:${writeJson(each)}`
  }
  return `{${members}}`
}

/** Half a character has no bytes in UTF-8. */
const escaped = (half: string): string => JSON.stringify(half).slice(1, -1)

const EACH = '*'
const NONE: readonly (string | undefined)[] = []

/**
 * The texts of the values at a path of a document that is known to be JSON: one for each item of the lists on the way, which
 * `*` stands for, undefined where an item has none. Nothing is looked at where no member of the path's last name is, and
 * nothing is told of what is too deep to be looked into.
 */
export function textsAt(json: string | Buffer, path: readonly string[]): readonly (string | undefined)[] {
  if (!json.includes(`"${path.at(-1)}"`)) return NONE
  const bytes = typeof json === 'string' ? Buffer.from(json) : json
  try {
    return textsFrom(bytes, path, skipSpace(bytes, 0))
  } catch {
    return NONE
  }
}

function textsFrom(bytes: Buffer, [name, ...rest]: readonly string[], start: number): (string | undefined)[] {
  if (name === undefined) return [bytes.toString('utf8', start, skipValue(bytes, start))]
  if (name === EACH) return itemsAt(bytes, start).flatMap((item) => textsFrom(bytes, rest, item))
  const member = membersAt(bytes, start).findLast(([each]) => each === name)?.[1]
  if (member) return textsFrom(bytes, rest, member.start)
  return rest.includes(EACH) ? [] : [undefined]
}

/** The text of an object, as it came where that is known. */
export const mapText = (map: Readonly<Record<string, unknown>> | null | undefined, text: string | undefined): string =>
  (map && text) ?? JSON.stringify(map ?? {})
