import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { md5 } from '../../src/base/hash.ts'
import { randomSource } from '../../test/memory/search/random-vectors.ts'
import { textOf } from './words.ts'

interface ModelRequest {
  input?: string | string[]
  encoding_format?: string
}

/** A vector that depends on the text alone. */
export function vectorOf(text: string, dimension: number): number[] {
  const random = randomSource(Number.parseInt(md5(text).slice(0, 8), 16))
  return Array.from({ length: dimension }, () => random() - 0.5)
}

/** An OpenAI-compatible model on this machine: any vector for a text, and one new fact of 20 words for any chat. */
export async function startModelServer(dimension: number): Promise<{ url: string; close(): Promise<void> }> {
  let facts = 0
  const embed = ({ input = [], encoding_format }: ModelRequest): object => ({
    object: 'list',
    model: 'stand-in',
    usage: { prompt_tokens: 1, total_tokens: 1 },
    data: [input].flat().map((text, index) => {
      const vector = vectorOf(text, dimension)
      const bytes = Buffer.from(Float32Array.from(vector).buffer)
      return { object: 'embedding', index, embedding: encoding_format === 'base64' ? bytes.toString('base64') : vector }
    }),
  })
  const chat = (): object => {
    const content = JSON.stringify({ memory: [{ id: '0', text: `${textOf(facts++, 20)} ${facts}` }] })
    return {
      id: 'chat',
      object: 'chat.completion',
      created: 0,
      model: 'stand-in',
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }],
    }
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = (await json(request)) as ModelRequest
    const result = request.url?.endsWith('/embeddings') ? embed(body) : chat()
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(result))
  }
  const server = createServer((request, response) => void answer(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
