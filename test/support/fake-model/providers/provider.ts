import type { Behaviour } from '../script.ts'
import type { Frame, Json, ReceivedCall, Refusal, Reply } from '../wire.ts'

/** One provider's wire. */
export interface Provider {
  /** The fields of a credential that make a client call the fake at this address. */
  credential(url: string): Json
  /**
   * Checks who calls, and answers what asks for no model: lists, tokens. Undefined for what a script governs.
   * @throws Refusal
   */
  aside(call: ReceivedCall): Reply | undefined
  /** @throws Refusal for what this provider does not take */
  answer(call: ReceivedCall, behaviour: Behaviour): Reply
  /** The refusal in this provider's words. */
  refuse(refusal: Refusal, call: ReceivedCall): Reply
  /** The same in the middle of a stream. */
  errorFrame(refusal: Refusal, call: ReceivedCall): Frame
  exchanges?(): number
}

export interface Clock {
  now(): number
}
