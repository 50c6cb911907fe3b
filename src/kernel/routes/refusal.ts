import type { FastifyReply, FastifyRequest } from 'fastify'
import { errorText } from '../../base/errors.ts'
import { isDiskFull } from '../../database/full-disk.ts'
import { invalid, KernelError } from '../errors.ts'
import { DISK_FULL } from '../health.ts'
import type { Kernel } from '../service.ts'
import { NO_JSON } from './incoming.ts'

/** Errors as answers. Contract: kernel-1.md 1.4. */

const PING_MS = 2000

/** Answers with a refusal as it is, with any other error by a text of ours: its cause is only logged. */
export async function answerError(
  kernel: Kernel,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { status, message } = await refusalOf(kernel, error, request)
  if (status === 401) reply.header('WWW-Authenticate', 'Bearer realm="kernel"')
  if (status === 503) reply.header('Retry-After', '1')
  return sendJson(reply.code(status), { error: message })
}

/** What is said of what never became a request. */
export const unreadable = (message: string): string => textOf({ error: message })

export const sendJson = (reply: FastifyReply, body: unknown): FastifyReply =>
  reply.type('application/json; charset=utf-8').send(textOf(body))

const textOf = (body: unknown): string => JSON.stringify(body) + '\n'

type Refusal = Pick<KernelError, 'status' | 'message'>

async function refusalOf(kernel: Kernel, error: unknown, request: FastifyRequest): Promise<Refusal> {
  if (error instanceof KernelError) return error
  const ofFramework = frameworkRefusal(error)
  if (ofFramework) return ofFramework
  kernel.context.log.error({ err: error, request_id: request.id }, 'a request failed')
  if (isDiskFull(error)) {
    kernel.health.sawFullDisk()
    return new KernelError('unavailable', DISK_FULL)
  }
  if (await isDown(kernel)) return new KernelError('unavailable', 'the store does not answer: try again')
  return { status: 500, message: 'internal error' }
}

/** Of the framework's own refusals: a bad request line, a bad length, a content type that is none. */
function frameworkRefusal(error: unknown): Refusal | undefined {
  if (!(error instanceof Error) || !('code' in error) || !String(error.code).startsWith('FST_')) return undefined
  if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return invalid(NO_JSON)
  const status = 'statusCode' in error && typeof error.statusCode === 'number' ? error.statusCode : 500
  if (status >= 500) return undefined
  return { status: status === 413 ? 413 : 400, message: errorText(error) }
}

/** Whatever the error says, a store that answers is not what is down. */
async function isDown({ context }: Kernel): Promise<boolean> {
  const late = new Promise<boolean>((resolve) => setTimeout(() => resolve(true), PING_MS).unref())
  const ping = context.store.database.ping().then(
    () => false,
    () => true,
  )
  return Promise.race([ping, late])
}
