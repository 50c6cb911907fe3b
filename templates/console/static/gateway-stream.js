// Asks a model and reads its answer as it comes.
import { lost, send } from './gateway-session.js'

/** Sends a chat; resolves with the response when its head is there. */
export const ask = (model, messages, signal) =>
  send(
    'POST',
    '/rest/v1/llm-gateway/v1/chat/completions',
    { model, messages, stream: true, stream_options: { include_usage: true } },
    signal,
  )

/** Tells each piece: `content`, `reasoning`, `calls`, `usage`, `finish`. @throws what an event calls an error */
export async function readChat(response, tell) {
  for await (const data of events(response.body)) {
    if (data === '[DONE]') return
    const { choices = [], usage, error } = JSON.parse(data)
    if (error) throw new Error(error.message)
    const { delta = {}, finish_reason: finish } = choices[0] ?? {}
    const calls = (delta.tool_calls ?? []).map(({ function: { name, arguments: given = '' } = {} }) =>
      name ? `${name} ${given}` : given,
    )
    const content = delta.content ?? delta.refusal
    tell({ content, reasoning: delta.reasoning_content, calls: calls.join('\n'), usage, finish })
  }
}

/** The data of each event; lines end as providers like. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error) => {
        throw error.name === 'AbortError' ? error : lost('the connection broke in the middle of the answer', error)
      })
      if (done) return
      const pieces = (rest + value).replace(/\r\n|\r(?!$)/g, '\n').split('\n\n')
      rest = pieces.pop()
      for (const piece of pieces) {
        const data = piece.split('\n').filter((line) => line.startsWith('data:'))
        if (data.length > 0) yield data.map((line) => line.slice(5).trimStart()).join('\n')
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}
