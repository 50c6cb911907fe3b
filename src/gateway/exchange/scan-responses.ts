import { parseJson } from '../chat/json.ts'
import { bytesOf, readFrame } from '../relay/frames.ts'
import { eventFault, type FaultView } from './faults.ts'
import type { StreamStep } from './exchange.ts'
import { Facts } from './facts.ts'
import { readResponse } from './responses-answer.ts'
import type { Scan } from './scan.ts'

const DELTA = /^event: response\.[\w.]+\.delta\r?\n/
const STARTS: ReadonlySet<unknown> = new Set(['response.created', 'response.queued', 'response.in_progress'])
const STOPS: ReadonlySet<unknown> = new Set(['response.completed', 'response.incomplete'])
const FAILURES: ReadonlySet<unknown> = new Set(['error', 'response.failed'])

/** Events of OpenAI's responses. */
export class ResponsesScan implements Scan {
  readonly facts = new Facts()
  state: StreamStep['state'] = 'waiting'
  readonly #view: FaultView

  constructor(view: FaultView) {
    this.#view = view
  }

  /** Each of its events has a number of its own. */
  repeats(): boolean {
    return false
  }

  frame(raw: string): undefined {
    if (DELTA.test(raw)) {
      this.facts.textBytes += bytesOf(raw, 'delta"')
      this.state = 'content'
      return
    }
    const { data } = readFrame(raw)
    const event = parseJson(data)
    if (!event) return
    const { type, response, error } = event
    const told = readResponse(response)
    if (told?.model !== undefined) this.facts.responseModel = told.model
    if (told?.id !== undefined) this.facts.responseId = told.id
    if (told?.usage) this.facts.usage = told.usage
    if (FAILURES.has(type) || (error !== undefined && error !== null)) {
      throw eventFault(data, this.#view, undefined, this.facts)
    }
    if (STOPS.has(type)) {
      this.facts.finishReason = told?.finishReason
      this.state = 'stopped'
    } else if (!STARTS.has(type)) this.state = 'content'
    else if (this.state === 'waiting') this.state = 'started'
  }

  end(): string | undefined {
    return this.state === 'stopped' ? '' : undefined
  }
}
