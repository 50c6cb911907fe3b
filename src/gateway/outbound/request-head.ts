import type { OutboundRequest } from './dispatcher.ts'

const PATH = /^\/[\x21-\x7e]*$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Whether a header can carry it. Source: RFC 9110, section 5.5. */
export const isHeaderValue = (text: string): boolean => VALUE.test(text)

/**
 * The head of a request as it goes over the wire, in Latin-1. Source: RFC 9112, section 3.
 * @param length of the body
 * @throws TypeError when path or headers hold what would end a line
 */
export function headOf({ method, path, headers }: OutboundRequest, host: string, length: number): string {
  if (!PATH.test(path)) throw new TypeError('the path of a request holds what none can')
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\n`
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const [name = '', value = ''] = [headers[i], headers[i + 1]]
    if (!isHeaderValue(value)) throw new TypeError(`the header ${name} holds what none can`)
    head += `${name}: ${value}\r\n`
  }
  if (method !== 'GET') head += `content-length: ${length}\r\n`
  return `${head}\r\n`
}
