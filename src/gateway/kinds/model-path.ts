import { GatewayError } from '../errors.ts'

const MAX_BYTES = 512

/**
 * A model name as a segment of a path: all but `A-Z a-z 0-9 - . _ ~` percent-encoded, so that providers and signatures
 * read the same. Contract: gateway.md 10.3.
 * @throws GatewayError 400 `invalid_value` for control characters, dot segments, more than 512 bytes
 */
export function modelPath(model: string): string {
  const reason = wrongModel(model)
  if (reason !== undefined) throw new GatewayError('invalid_value', `the model name ${reason}`, { param: 'model' })
  return encodeURIComponent(model).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** Why a name is none that may travel; undefined when it may. */
export function wrongModel(model: string): string | undefined {
  if (model === '') return 'is empty'
  if (Buffer.byteLength(model) > MAX_BYTES) return `is longer than ${MAX_BYTES} bytes`
  if (/[\p{Cc}\p{Cs}]/u.test(model)) return 'holds control characters, or half of one' // \p{Cs}: a surrogate alone
  return model.split(/[/\\]/).some((part) => part === '.' || part === '..') ? 'holds a dot segment' : undefined
}
