import { parse } from 'yaml'
import { isMap } from '../../base/json.ts'

export interface FrontMatter {
  /** Empty where there is none. */
  fields: object
  body: string
}

const FENCED = /^\ufeff?---[ \t]*\r?\n(?:([^]*?)\r?\n)?(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/

/**
 * What stands in YAML between two lines of `---` at the begin of a Markdown file, and the rest.
 * @throws an error of the YAML parser
 */
export function splitFrontMatter(text: string): FrontMatter {
  const match = FENCED.exec(text)
  if (!match) return { fields: {}, body: text }
  const fields: unknown = parse(match[1] ?? '')
  // Between two rules that a text may begin with stands no map.
  if (!isMap(fields) && fields !== null) return { fields: {}, body: text }
  return { fields: fields ?? {}, body: text.slice(match[0].length) }
}
