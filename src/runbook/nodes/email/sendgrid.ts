import { NodeError } from '../../errors.ts'
import type { NodeContext } from '../../registry.ts'
import { serviceError } from '../chat/send.ts'
import { optionalText } from '../settings.ts'
import type { Address, Delivery, Mail } from './send.ts'

const ENDPOINT = 'https://api.sendgrid.com/v3/mail/send'

/** @throws NodeError auth_failed, rate_limited, http_status, service_rejected */
export async function sendBySendgrid(
  { config, http }: Pick<NodeContext, 'config' | 'http'>,
  mail: Mail,
): Promise<Delivery> {
  const apiKey = optionalText(config, 'apiKey')
  if (apiKey === undefined) throw new NodeError('config_invalid', '"apiKey" is required for sendgrid')
  const response = await http(ENDPOINT, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(request(mail)),
  })
  if (response.status < 200 || response.status > 299) throw serviceError(response)
  const accepted = [...mail.to, ...mail.cc, ...mail.bcc].map(({ address }) => address)
  return { messageId: response.headers.get('x-message-id'), accepted, rejected: [] }
}

const request = ({ to, cc, bcc, from, replyTo, subject, body, isHtml, headers }: Mail): object => ({
  personalizations: [
    {
      to: to.map(person),
      ...(cc.length > 0 && { cc: cc.map(person) }),
      ...(bcc.length > 0 && { bcc: bcc.map(person) }),
    },
  ],
  from: person(from),
  ...(replyTo && { reply_to: person(replyTo) }),
  subject,
  content: [{ type: isHtml ? 'text/html' : 'text/plain', value: body }],
  ...(Object.keys(headers).length > 0 && { headers }),
})

const person = ({ name, address }: Address): object => ({ email: address, ...(name !== '' && { name }) })
