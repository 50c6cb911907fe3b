import { GatewayError, invalid } from '../errors.ts'
import { broken, readMap, readMembers, skipSpace, skipValue, type Member } from '../relay/body.ts'

const ONCE: ReadonlySet<string> = new Set(['model', 'stream'])
/** What is judged here; programs in Go read these names in any case. */
const JUDGED: ReadonlySet<string> = new Set([...ONCE, 'max_tokens', 'max_completion_tokens', 'max_output_tokens'])
const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_MAP = 0x7b

/** What a body is made of. */
export interface Scan {
  readonly members: ReadonlyMap<string, Member>
  /** Bytes of the longest part of a message, or of another member. */
  readonly longest: number
}

/**
 * The top-level members of a request's body, found in one pass. `messages` must be a list of one message or more, each with a
 * role, and with content unless it carries calls.
 * @throws GatewayError 400 as `readMembers`, with `model` and `stream` once, for what is judged here under a name in another
 *   case, and for messages that are none. Contract: gateway.md 3.2, 10.3
 */
export function scanBody(body: Buffer): Scan {
  const messages = new Messages(body)
  const members = readMembers(body, ONCE, (name, start) => {
    if (name === 'messages') return messages.read(start)
    if (!JUDGED.has(name)) refuseOtherCase(name)
    return messages.skip(start, 1)
  })
  return { members, longest: messages.longest }
}

/** The long s too is an s to them. */
function refuseOtherCase(name: string): void {
  const known = name.toUpperCase().toLowerCase()
  if (JUDGED.has(known)) throw invalid(`${known} must be written so, not ${name}`, known)
}

/** Reads the messages of a body. */
class Messages {
  readonly #body: Buffer
  longest = 0

  constructor(body: Buffer) {
    this.#body = body
  }

  skip(start: number, depth: number): number {
    const end = skipValue(this.#body, start, depth)
    if (end - start > this.longest) this.longest = end - start
    return end
  }

  read(from: number): number {
    const body = this.#body
    if (body[from] !== OPEN_LIST) throw invalid('messages must be a list', 'messages')
    let at = skipSpace(body, from + 1)
    if (body[at] === CLOSE_LIST) throw invalid('messages must not be empty', 'messages')
    for (let index = 0; ; index++) {
      if (body[at] !== OPEN_MAP) throw invalid(`messages[${index}] must be an object`, `messages[${index}]`)
      at = skipSpace(body, this.#readOne(at, index))
      if (body[at] === CLOSE_LIST) return at + 1
      if (body[at] !== COMMA) throw broken(at)
      at = skipSpace(body, at + 1)
    }
  }

  #readOne(from: number, index: number): number {
    let hasRole = false
    let hasContent = false
    const end = readMap(this.#body, from, (name, _at, start) => {
      if (name === 'role') hasRole = this.#body[start] === QUOTE
      else if (name === 'content' || name === 'tool_calls' || name === 'function_call') hasContent = true
      return this.skip(start, 3)
    })
    if (!hasRole) throw invalid(`messages[${index}].role must be a string`, `messages[${index}].role`)
    if (!hasContent) {
      const param = `messages[${index}].content`
      throw new GatewayError('missing_required_parameter', `${param} is missing`, { param })
    }
    return end
  }
}
