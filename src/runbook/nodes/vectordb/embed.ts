import { setTimeout as wait } from 'node:timers/promises'
import * as z from 'zod'
import { NodeError } from '../../errors.ts'
import type { HttpRequest, HttpResponse } from '../../outbound/request.ts'
import type { NodeContext } from '../../registry.ts'
import { decodeBody, statusError } from '../answers.ts'
import { optionalText, text } from '../settings.ts'

const TRIES = 3
const FIRST_PAUSE_MS = 100

export type Vector = readonly number[]

interface Service {
  readonly baseUrl?: string
  readonly model?: string
  request(base: string, model: string, key: string | undefined, texts: readonly string[]): [url: string, HttpRequest]
  readonly vectors: (answer: unknown) => Vector[]
}

const openaiAnswer = z.looseObject({ data: z.array(z.looseObject({ embedding: z.array(z.number()) })) })
const geminiAnswer = z.looseObject({ embeddings: z.array(z.looseObject({ values: z.array(z.number()) })) })

const json = (headers: Record<string, string>, body: object): HttpRequest => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

const likeOpenai = {
  request: (base: string, model: string, key: string | undefined, input: readonly string[]): [string, HttpRequest] => [
    `${base}/embeddings`,
    json(key === undefined ? {} : { authorization: `Bearer ${key}` }, { model, input }),
  ],
  vectors: (answer: unknown) => openaiAnswer.parse(answer).data.map(({ embedding }) => embedding),
}

const SERVICES: Readonly<Record<string, Service>> = {
  openai: { baseUrl: 'https://api.openai.com/v1', model: 'text-embedding-3-small', ...likeOpenai },
  voyage: { baseUrl: 'https://api.voyageai.com/v1', model: 'voyage-3.5', ...likeOpenai },
  'openai-compatible': likeOpenai,
  gemini: {
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    model: 'gemini-embedding-001',
    request: (base, model, key, texts) => [
      `${base}/models/${encodeURIComponent(model)}:batchEmbedContents`,
      json(key === undefined ? {} : { 'x-goog-api-key': key }, {
        requests: texts.map((part) => ({ model: `models/${model}`, content: { parts: [{ text: part }] } })),
      }),
    ],
    vectors: (answer) => geminiAnswer.parse(answer).embeddings.map(({ values }) => values),
  },
}

/** A vector for each text. Contract: runbook.md 6.6. @throws NodeError auth_failed, config_invalid, embedding_failed */
export async function embedTexts(context: NodeContext, texts: readonly string[]): Promise<readonly Vector[]> {
  const { config, services } = context
  if (texts.length === 0) return []
  const name = text(config, 'embeddingProvider')
  const service = SERVICES[name]
  if (!service) {
    const { embedByHash } = services
    if (!embedByHash) throw new NodeError('config_invalid', 'the hash embedder is not available here')
    return Promise.all(texts.map(async (each) => Array.from(await embedByHash(each))))
  }
  const base = optionalText(config, 'embeddingBaseUrl') ?? service.baseUrl
  const model = optionalText(config, 'embeddingModel') ?? service.model
  const key = optionalText(config, 'embeddingApiKey') ?? services.apiKeys?.[name]
  if (base === undefined || model === undefined) {
    throw new NodeError('config_invalid', `${name} needs "embeddingBaseUrl" and "embeddingModel"`)
  }
  if (key === undefined && service.baseUrl !== undefined)
    throw new NodeError('config_invalid', `no API key for ${name}`)
  const request = service.request(base.replace(/\/+$/, ''), model, key, texts)
  const vectors = await tried(context, name, async () =>
    service.vectors(decodeBody(await asked(context, request), 'json')),
  )
  if (vectors.length === texts.length) return vectors
  throw new NodeError('embedding_failed', `${name} gave ${vectors.length} vectors for ${texts.length} texts`)
}

async function asked(context: NodeContext, [url, request]: [string, HttpRequest]): Promise<HttpResponse> {
  const response = await context.http(url, request)
  if (response.status === 401 || response.status === 403) throw statusError(response, 'auth_failed')
  if (response.status > 299) throw statusError(response)
  return response
}

const FINAL = ['auth_failed', 'address_refused', 'config_invalid', 'header_invalid', 'cancelled', 'timeout']

async function tried<T>({ signal }: NodeContext, name: string, attempt: () => Promise<T>): Promise<T> {
  for (let number = 1; ; number++) {
    try {
      return await attempt()
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof NodeError && FINAL.includes(error.code)) throw error
      if (number === TRIES) {
        const reason = error instanceof NodeError ? error.message : 'the answer has an unknown form'
        throw new NodeError('embedding_failed', `${name} failed ${TRIES} times: ${reason}`)
      }
      await wait(FIRST_PAUSE_MS * number, undefined, { signal })
    }
  }
}
