import { hash } from 'node:crypto'
import { isMap } from '../../base/json.ts'

/** Of either side. */
export const KEPT_BYTES = 256 * 1024
const DATA_URL = /^data:([^;,]*)[^,]*;base64,/i

/**
 * A request or a whole answer as `content_logging` keeps it: of images and files, wherever they stand, type, size and hash.
 * Contract: gateway.md 9.
 */
export function keptContent(body: Buffer): Buffer {
  return (hasFiles(body) ? Buffer.from(withoutFiles(body)) : body).subarray(0, KEPT_BYTES)
}

const hasFiles = (body: Buffer): boolean => body.includes('base64') || body.includes('"input_audio"')

function withoutFiles(body: Buffer): string {
  try {
    return JSON.stringify(JSON.parse(body.toString('utf8'), plain))
  } catch {
    return described('no JSON', body)
  }
}

/** As it is read: what is inside comes first. */
function plain(name: string, value: unknown): unknown {
  if (typeof value === 'string') {
    const [start, type] = DATA_URL.exec(value.slice(0, 200)) ?? []
    return start === undefined ? value : ofBase64(type, value.slice(start.length))
  }
  if (!isMap(value) || typeof value['data'] !== 'string') return value
  const { type, media_type: mediaType, format, data } = value
  const isFile = type === 'base64' || name === 'input_audio'
  return isFile ? { ...value, data: ofBase64(mediaType ?? format, data) } : value
}

const ofBase64 = (type: unknown, text: string): string => described(String(type), Buffer.from(text, 'base64'))

const described = (type: string, bytes: Buffer): string =>
  `${type}, ${bytes.length} bytes, sha256 ${hash('sha256', bytes, 'hex')}`
