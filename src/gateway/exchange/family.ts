import type { GatewayError } from '../errors.ts'
import type { Dialect, Surface } from '../model.ts'

/** How clients of a surface are spoken to: the OpenAI family, or Anthropic's. Contract: gateway.md 3.4, 6. */
export interface Family {
  /** What a relay to it speaks. */
  readonly dialect: Extract<Dialect, 'openai' | 'anthropic'>
  /** Keeps a silent stream open. */
  readonly heartbeat: Buffer
  /** The last event of a stream that breaks off. */
  streamError(error: GatewayError, requestId: string): Buffer
}

const OPENAI: Family = {
  dialect: 'openai',
  heartbeat: Buffer.from(': ping\n\n'),
  streamError: (error) => Buffer.from(`data: ${JSON.stringify(error.toOpenAi())}\n\n`),
}

const ANTHROPIC: Family = {
  dialect: 'anthropic',
  heartbeat: Buffer.from('event: ping\ndata: {"type":"ping"}\n\n'),
  streamError: (error, requestId) =>
    Buffer.from(`event: error\ndata: ${JSON.stringify(error.toAnthropic(requestId))}\n\n`),
}

export const familyOf = (surface: Surface): Family => (surface === 'messages' ? ANTHROPIC : OPENAI)
