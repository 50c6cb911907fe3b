import { UnsayableError, type Media } from './form.ts'

const DATA_URL = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,/i

/** An image as its bytes, or as an https address. @throws UnsayableError */
export function mediaOf(url: string, param: string): Media {
  const [head, named] = DATA_URL.exec(url.slice(0, 200)) ?? []
  if (head !== undefined && named !== undefined) return { mediaType: mediaTypeOf(named), data: url.slice(head.length) }
  if (url.startsWith('https://')) return { url }
  throw new UnsayableError('invalid_value', param, 'an image is a data URL with base64, or an https URL')
}

/** Clients write `image/jpg`, which OpenAI takes and no other provider does. */
function mediaTypeOf(named: string): string {
  const type = named.toLowerCase()
  return type === 'image/jpg' ? 'image/jpeg' : type
}

export const dataUrl = (source: Media): string =>
  'url' in source ? source.url : `data:${source.mediaType};base64,${source.data}`
