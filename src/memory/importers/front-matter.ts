import { parse } from 'yaml'

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
  const isMap = typeof fields === 'object' && fields !== null && !Array.isArray(fields)
  // Between two rules that a text may begin with stands no map.
  if (!isMap && fields !== null) return { fields: {}, body: text }
  return { fields: isMap ? fields : {}, body: text.slice(match[0].length) }
}
