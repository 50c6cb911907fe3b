import { jsonFault } from '../../base/json.ts'
import { GatewayError, invalid } from '../errors.ts'
import type { InferenceRequest } from '../exchange/exchange.ts'
import type { Surface } from '../model.ts'
import type { Member } from '../relay/body.ts'
import { scanBody } from './scan.ts'

const MODEL_BYTES = 512
// oxlint-disable-next-line no-control-regex -- what must not be in a name
const CONTROL = /[\u0000-\u001f\u007f\ufffd]/
const QUOTE = 0x22
const OPEN_LIST = 0x5b
/** What would need an answer that only the provider of the call before could give. */
const STATEFUL = ['previous_response_id', 'conversation']

/** A body as far as the gateway judges it. */
export interface JudgedBody {
  readonly body: Buffer
  readonly members: ReadonlyMap<string, Member>
  readonly model: string
  readonly stream: boolean
  readonly longest: number
}

/**
 * Looks at the fields that every provider of a surface must have; the rest is the provider's to judge on a relay, ours on a
 * translation. Contract: gateway.md 3.2.
 * @throws GatewayError 400
 */
export function judgeBody(surface: Surface, body: Buffer, countOnly: boolean): JudgedBody {
  const { members, longest } = scanBody(body)
  const model = modelOf(body, members)
  const stream = flagOf(body, members, 'stream') && surface !== 'embeddings'
  if (surface === 'chat' || surface === 'messages') require(members, 'messages')
  if (surface === 'messages' && !countOnly) require(members, 'max_tokens')
  if (surface === 'responses') refuseState(body, members)
  if (surface === 'embeddings') judgeEmbeddings(body, members)
  return { body, members, model, stream, longest }
}

/** A judged body with what its caller may; its JSON is read when a translation first asks. */
export class Inference implements InferenceRequest {
  readonly surface: Surface
  readonly body: Buffer
  readonly members: ReadonlyMap<string, Member>
  readonly model: string
  readonly stream: boolean
  readonly longest: number
  readonly strict: boolean
  readonly organizationId: number
  readonly countOnly: boolean
  readonly maxOutputTokens: number | undefined
  #json: { readonly value: unknown } | undefined

  constructor(
    judged: JudgedBody,
    facts: Pick<Inference, 'surface' | 'strict' | 'organizationId' | 'countOnly' | 'maxOutputTokens'>,
  ) {
    this.body = judged.body
    this.members = judged.members
    this.model = judged.model
    this.stream = judged.stream
    this.longest = judged.longest
    this.surface = facts.surface
    this.strict = facts.strict
    this.organizationId = facts.organizationId
    this.countOnly = facts.countOnly
    this.maxOutputTokens = facts.maxOutputTokens
  }

  /** @throws GatewayError 400 `invalid_json` */
  json(): unknown {
    this.#json ??= { value: parse(this.body) }
    return this.#json.value
  }
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (error) {
    throw new GatewayError('invalid_json', `the body is not valid JSON: ${jsonFault(error)}`)
  }
}

function require(members: JudgedBody['members'], name: string): Member {
  const member = members.get(name)
  if (member) return member
  throw new GatewayError('missing_required_parameter', `${name} is missing`, { param: name })
}

function modelOf(body: Buffer, members: JudgedBody['members']): string {
  const { start, end } = require(members, 'model')
  if (body[start] !== QUOTE) throw invalid('model must be a string', 'model')
  if (end - start > 6 * MODEL_BYTES) throw invalid(TOO_LONG, 'model')
  const text = body.toString('utf8', start + 1, end - 1)
  const model = text.includes('\\') ? unescaped(text) : text
  if (model === '') throw invalid('model must not be empty', 'model')
  if (Buffer.byteLength(model) > MODEL_BYTES) throw invalid(TOO_LONG, 'model')
  if (CONTROL.test(model) || (model !== text && Buffer.from(model).toString() !== model)) {
    throw invalid('model must be text without control characters', 'model')
  }
  if (model.includes('.') && model.split('/').some((part) => part === '.' || part === '..')) {
    throw invalid('model must have no dot segments', 'model')
  }
  return model
}

const TOO_LONG = `model must have ${MODEL_BYTES} bytes at most`

function unescaped(text: string): string {
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    throw new GatewayError('invalid_json', 'model is not a valid JSON string', { param: 'model' })
  }
}

const scalarOf = (body: Buffer, { start, end }: Member): string =>
  body.toString('latin1', start, Math.min(end, start + 40))

/** Absent and null are false. */
function flagOf(body: Buffer, members: JudgedBody['members'], name: string): boolean {
  const member = members.get(name)
  const text = member ? scalarOf(body, member) : 'null'
  if (text !== 'true' && text !== 'false' && text !== 'null') throw invalid(`${name} must be a boolean`, name)
  return text === 'true'
}

function refuseState(body: Buffer, members: JudgedBody['members']): void {
  const named = STATEFUL.find((name) => {
    const member = members.get(name)
    return member && scalarOf(body, member) !== 'null'
  })
  const param = named ?? (flagOf(body, members, 'background') ? 'background' : undefined)
  if (param === undefined) return
  const message = `${param} is not supported: the next call may go to another provider, which knows nothing of this one`
  throw new GatewayError('unsupported_parameter', message, { param })
}

function judgeEmbeddings(body: Buffer, members: JudgedBody['members']): void {
  const input = require(members, 'input')
  const first = body[input.start]
  if (first !== QUOTE && first !== OPEN_LIST) throw invalid('input must be a string or a list', 'input')
  const format = members.get('encoding_format')
  if (format && !['"float"', '"base64"', 'null'].includes(scalarOf(body, format))) {
    throw invalid('encoding_format must be float or base64', 'encoding_format')
  }
  const dimensions = members.get('dimensions')
  if (dimensions && !/^(?:null|[1-9]\d{0,8})$/.test(scalarOf(body, dimensions))) {
    throw invalid('dimensions must be a whole number from 1', 'dimensions')
  }
}
