import { isMap } from '../base/json.ts'
import { BodyError, refuseBad } from '../http/json-body.ts'

/** JSON-RPC 2.0 as far as this server speaks it. Contract: memory.md 12.1. */

export const FRAME_MAX_BYTES = 4 * 1024 * 1024

export const ERRORS = {
  parse: -32700,
  frame: -32600,
  method: -32601,
  arguments: -32602,
  operation: -32603,
  unauthorized: -32001,
  /** Of the stateless revision. */
  headerMismatch: -32020,
  unsupportedRevision: -32022,
} as const

export type Id = string | number
export type Params = Readonly<Record<string, unknown>>

/** A request, or without an id a notification. */
export interface Message {
  id?: Id
  method: string
  params: Params
}

/** A refusal as it travels. `status` is that of the answer over HTTP, where each frame has its own. */
export class RpcError extends Error {
  readonly code: number
  readonly data: object | undefined
  readonly status: number

  constructor(code: number, message: string, data?: object, status = 200) {
    super(message)
    this.code = code
    this.data = data
    this.status = status
  }
}

/** What goes back for one message: its frame as JSON. */
export interface Response {
  frame: string
  status: number
}

/** @param result as JSON */
export const resultOf = (id: Id, result: string): Response => ({
  frame: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`,
  status: 200,
})

export const errorOf = (id: Id | null, { code, message, data, status }: RpcError): Response => ({
  frame: JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, ...(data && { data }) } }),
  status,
})

export const badFrame = (message: string): RpcError => new RpcError(ERRORS.frame, message, undefined, 400)
export const frameTooLarge = badFrame('the frame is larger than 4 MiB')

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** The JSON of a frame: one message, or several. @throws RpcError */
export function readFrame(bytes: Uint8Array): unknown {
  if (bytes.length > FRAME_MAX_BYTES) throw frameTooLarge
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(bytes))
  } catch {
    throw new RpcError(ERRORS.parse, 'the frame is not JSON in UTF-8', undefined, 400)
  }
  if (Array.isArray(value) && value.length === 0) throw badFrame('the array of messages is empty')
  return value
}

/** @throws RpcError when it is neither request nor notification. */
export function readMessage(message: unknown): Message {
  if (!isMap(message)) throw badFrame('a message must be an object')
  try {
    refuseBad(message, false)
  } catch (error) {
    throw error instanceof BodyError ? badFrame(error.message) : error
  }
  const { jsonrpc, id, method, params = {} } = message
  if (jsonrpc !== '2.0') throw badFrame('jsonrpc must be "2.0"')
  if (typeof method !== 'string') throw badFrame('method must be a string')
  if (!isMap(params)) throw badFrame('params must be an object')
  if (!('id' in message)) return { method, params }
  if (!isId(id)) throw badFrame('id must be a string or a number')
  return { id, method, params }
}

/** The id to answer a bad message under. */
export const idOf = (message: unknown): Id | null => (isMap(message) && isId(message['id']) ? message['id'] : null)

const isId = (id: unknown): id is Id => typeof id === 'string' || typeof id === 'number'
