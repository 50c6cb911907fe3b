import { parse } from 'yaml'
import { errorText } from '../../base/errors.ts'
import { isMap } from '../../base/json.ts'

export interface FrontMatter {
  /** Empty where there is none. */
  fields: object
  body: string
}

const FENCED = /^\ufeff?---[ \t]*\r?\n(?:([^]*?)\r?\n)?(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/

/**
 * What stands in YAML between two lines of `---` at the begin of a Markdown file, and the rest.
 * @throws Error with line and column of the file
 */
export function splitFrontMatter(text: string): FrontMatter {
  const match = FENCED.exec(text)
  if (!match) return { fields: {}, body: text }
  const fields = parseFields(match[1] ?? '')
  // Between two rules that a text may begin with stands no map.
  if (!isMap(fields) && fields !== null) return { fields: {}, body: text }
  return { fields: fields ?? {}, body: text.slice(match[0].length) }
}

function parseFields(yaml: string): unknown {
  try {
    return parse(`\n${yaml}`) // behind the line of `---`
  } catch (error) {
    const [reason = ''] = errorText(error).split('\n') // the lines after it quote the file
    throw new Error(`its front matter is no YAML: ${reason.replace(/:$/, '')}`, { cause: error })
  }
}
