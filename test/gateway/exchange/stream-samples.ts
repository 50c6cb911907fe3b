import type { Candidate } from '../../../src/gateway/routing/candidate.ts'
import { awsMessage, candidateOf, named, sse } from './support.ts'

/** The same said by each provider: a thought, text with an emoji, a call, its end, tokens. */
export const STREAMS: Record<string, { candidate: Candidate; bytes: Buffer }> = {
  anthropic: {
    candidate: candidateOf('anthropic'),
    bytes: Buffer.from(
      named(
        {
          type: 'message_start',
          message: { id: 'a1', model: 'x', usage: { input_tokens: 6, cache_read_input_tokens: 3, output_tokens: 1 } },
        } as never,
        { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } } as never,
        { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'hm' } } as never,
        { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 's' } } as never,
        { type: 'content_block_stop', index: 0 } as never,
        { type: 'ping' },
        { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'wet 🌧' } } as never,
        {
          type: 'content_block_start',
          index: 2,
          content_block: { type: 'tool_use', id: 'c1', name: 'rain', input: {} },
        } as never,
        { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '{"at":' } } as never,
        { type: 'content_block_delta', index: 2, delta: { type: 'input_json_delta', partial_json: '1}' } } as never,
        { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 8 } } as never,
        { type: 'message_stop' },
      ),
    ),
  },
  openai: {
    candidate: candidateOf('openai'),
    bytes: Buffer.from(
      sse(
        { id: 'a1', model: 'x', choices: [{ delta: { role: 'assistant', content: '' } }] },
        { id: 'a1', model: 'x', choices: [{ delta: { reasoning_content: 'hm' } }] },
        { id: 'a1', model: 'x', choices: [{ delta: { content: 'wet 🌧' } }] },
        {
          id: 'a1',
          model: 'x',
          choices: [{ delta: { tool_calls: [{ index: 0, id: 'c1', function: { name: 'rain', arguments: '' } }] } }],
        },
        {
          id: 'a1',
          model: 'x',
          choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: '{"at":1}' } }] } }],
        },
        { id: 'a1', model: 'x', choices: [{ delta: {}, finish_reason: 'tool_calls' }] },
        { choices: [], usage: { prompt_tokens: 9, completion_tokens: 8, prompt_tokens_details: { cached_tokens: 3 } } },
        '[DONE]',
      ),
    ),
  },
  gemini: {
    candidate: candidateOf('gemini'),
    bytes: Buffer.from(
      sse(
        { responseId: 'a1', modelVersion: 'x', candidates: [{ content: { parts: [{ text: 'hm', thought: true }] } }] },
        { candidates: [{ content: { parts: [{ text: 'wet 🌧' }] } }] },
        {
          candidates: [
            {
              content: {
                parts: [{ functionCall: { id: 'c1', name: 'rain', args: { at: 1 } }, thoughtSignature: 'g' }],
              },
            },
          ],
        },
        {
          candidates: [{ finishReason: 'STOP' }],
          usageMetadata: { promptTokenCount: 9, cachedContentTokenCount: 3, candidatesTokenCount: 8 },
        },
      ),
    ),
  },
  converse: {
    candidate: candidateOf('bedrock', { model: 'x' }),
    bytes: Buffer.concat([
      awsMessage({ ':event-type': 'messageStart' }, { role: 'assistant' }),
      awsMessage(
        { ':event-type': 'contentBlockDelta' },
        { contentBlockIndex: 0, delta: { reasoningContent: { text: 'hm' } } },
      ),
      awsMessage(
        { ':event-type': 'contentBlockDelta' },
        { contentBlockIndex: 0, delta: { reasoningContent: { signature: 's' } } },
      ),
      awsMessage({ ':event-type': 'contentBlockDelta' }, { contentBlockIndex: 1, delta: { text: 'wet 🌧' } }),
      awsMessage(
        { ':event-type': 'contentBlockStart' },
        { contentBlockIndex: 2, start: { toolUse: { toolUseId: 'c1', name: 'rain' } } },
      ),
      awsMessage(
        { ':event-type': 'contentBlockDelta' },
        { contentBlockIndex: 2, delta: { toolUse: { input: '{"at":1}' } } },
      ),
      awsMessage({ ':event-type': 'messageStop' }, { stopReason: 'tool_use' }),
      awsMessage(
        { ':event-type': 'metadata' },
        { usage: { inputTokens: 6, cacheReadInputTokens: 3, outputTokens: 8 } },
      ),
    ]),
  },
}
