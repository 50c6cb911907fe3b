import { UnsayableError, type Media } from './form.ts'

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,/

/** An image as its bytes, or as an https address. @throws UnsayableError */
export function mediaOf(url: string, param: string): Media {
  const [head, mediaType] = DATA_URL.exec(url.slice(0, 200)) ?? []
  if (head !== undefined && mediaType !== undefined) return { mediaType, data: url.slice(head.length) }
  if (url.startsWith('https://')) return { url }
  throw new UnsayableError('invalid_value', param, 'an image is a data URL with base64, or an https URL')
}

export const dataUrl = (source: Media): string =>
  'url' in source ? source.url : `data:${source.mediaType};base64,${source.data}`
