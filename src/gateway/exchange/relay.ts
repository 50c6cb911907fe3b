import { isMap, jsonOf } from '../../base/json.ts'
import type { Candidate } from '../routing/candidate.ts'
import { editBody, type BodyEdits } from './edit-body.ts'
import { choicesAsked, estimateUsage } from './estimate.ts'
import type { AnswerStream, Exchange, InferenceRequest, JsonAnswer, UpstreamFault } from './exchange.ts'
import { familyOf } from './family.ts'
import { refusalFault, type FaultView } from './faults.ts'
import { allowedCap, CAPS } from './output-cap.ts'
import { readRelayed } from './relay-answer.ts'
import { RelayStream } from './relay-stream.ts'
import { AnthropicScan } from './scan-anthropic.ts'
import { OpenAiScan } from './scan-openai.ts'
import { ResponsesScan } from './scan-responses.ts'
import type { Scan } from './scan.ts'
import { targetOf } from './target.ts'

/** A request to a provider that speaks the client's dialect. Contract: gateway.md 5.1, 5.2, 6. */
export class Relay implements Exchange {
  readonly isRelay = true
  readonly body: Buffer
  readonly dropped: readonly string[]
  readonly #request: InferenceRequest
  readonly #isMistral: boolean
  readonly #wantsUsage: boolean
  readonly #addsUsage: boolean
  readonly #view: FaultView

  constructor(request: InferenceRequest, candidate: Candidate, view: FaultView) {
    const { surface, stream, countOnly } = request
    this.#request = request
    this.#view = view
    this.#isMistral = candidate.upstream.credential.kind === 'mistral'
    this.#wantsUsage = surface === 'chat' && stream && asksUsage(request)
    this.#addsUsage = surface === 'chat' && stream && !this.#wantsUsage && candidate.upstream.edits.streamUsage
    const edited = editBody(request.body, request.members, candidate, {
      cap: capOf(request, candidate),
      addUsage: this.#addsUsage,
      modelInBody: countOnly ? true : undefined,
    })
    this.body = edited.body
    this.dropped = edited.dropped
  }

  answer(body: Buffer): JsonAnswer {
    return readRelayed(body, this.#request, this.#isMistral, this.#view)
  }

  stream(): AnswerStream {
    return new RelayStream(this.#scan(), familyOf(this.#request.surface))
  }

  fault(status: number, headers: Readonly<Record<string, string>>, body: Buffer): UpstreamFault {
    return refusalFault(status, headers, body, this.#view)
  }

  #scan(): Scan {
    if (this.#request.surface === 'messages') return new AnthropicScan(this.#view)
    if (this.#request.surface === 'responses') return new ResponsesScan(this.#view)
    return new OpenAiScan({
      wantsUsage: this.#wantsUsage,
      hidesUsage: this.#addsUsage,
      isMistral: this.#isMistral,
      choices: choicesAsked(this.#request),
      estimate: (facts) => estimateUsage(this.#request, facts),
      view: this.#view,
    })
  }
}

/** Of a chat the field that the model knows comes first. */
function capOf(request: InferenceRequest, candidate: Candidate): BodyEdits['cap'] {
  const { surface, countOnly } = request
  const fields = CAPS[surface]
  const tokens = allowedCap(request, candidate)
  if (tokens === undefined || countOnly || fields.length === 0) return undefined
  const isOld = surface === 'chat' && targetOf(candidate).maxTokensField === 'max_tokens'
  return { fields: isOld ? fields.toReversed() : fields, tokens }
}

/** Whether a chat client asked for the usage chunk. */
function asksUsage({ body, members }: InferenceRequest): boolean {
  const member = members.get('stream_options')
  const options = member && jsonOf(body.toString('utf8', member.start, member.end))
  return isMap(options) && options['include_usage'] === true
}
