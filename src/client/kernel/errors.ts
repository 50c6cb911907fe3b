/** The kernel refused, or did not answer: then the status is 0. Contract: kernel-2.md 15. */
export class KernelApiError extends Error {
  readonly status: number
  /** Of registry routes. */
  readonly code?: string
  /** Under which the server's log tells more. */
  readonly requestId?: string

  constructor(
    status: number,
    message: string,
    { code, requestId, cause }: { code?: string; requestId?: string; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? {} : { cause })
    this.name = 'KernelApiError'
    this.status = status
    if (code !== undefined) this.code = code
    if (requestId !== undefined) this.requestId = requestId
  }

  isNotFound(): boolean {
    return this.status === 404
  }

  /** A stale revision, a state that does not allow it, a key that was used, or no room. */
  isConflict(): boolean {
    return this.status === 409
  }
}

/** The error of an answer that is no success. */
export function refusal(status: number, text: string, headers: Headers): KernelApiError {
  const { error, code } = parse(text)
  const requestId = headers.get('x-request-id')
  return new KernelApiError(status, typeof error === 'string' ? error : `HTTP status ${status}`, {
    ...(typeof code === 'string' && { code }),
    ...(requestId !== null && { requestId }),
  })
}

function parse(text: string): { error?: unknown; code?: unknown } {
  try {
    const body: unknown = JSON.parse(text)
    return body !== null && typeof body === 'object' ? body : {}
  } catch {
    return {}
  }
}
