import parseAddresses from 'nodemailer/lib/addressparser'
import { NodeError } from '../../errors.ts'
import type { ValueMap } from '../../hcl/values.ts'
import { fromJson } from '../../hcl/json.ts'
import type { NodeContext, NodeResult } from '../../registry.ts'
import { headerTexts } from '../http.ts'
import { asText, items, map, optionalText, text } from '../settings.ts'
import { sendBySendgrid } from './sendgrid.ts'
import { sendBySmtp } from './smtp.ts'

export interface Address {
  readonly name: string
  readonly address: string
}

export interface Mail {
  readonly to: readonly Address[]
  readonly cc: readonly Address[]
  readonly bcc: readonly Address[]
  readonly from: Address
  readonly replyTo: Address | undefined
  readonly subject: string
  readonly body: string
  readonly isHtml: boolean
  readonly headers: Readonly<Record<string, string>>
}

export interface Delivery {
  readonly messageId: string | null
  readonly accepted: readonly string[]
  readonly rejected: readonly string[]
}

/** @throws NodeError config_invalid, header_invalid, auth_failed, tls_failed, smtp_rejected, rate_limited, service_rejected */
export async function sendMail(context: NodeContext): Promise<NodeResult> {
  const mail = mailOf(context.config)
  const send = context.config.provider === 'sendgrid' ? sendBySendgrid : sendBySmtp
  const delivery = await send(context, mail)
  const to = mail.to.map(({ address }) => address)
  return { output: fromJson({ success: true, to, subject: mail.subject, ...delivery }) }
}

function mailOf(config: ValueMap): Mail {
  const headers = headerTexts(map(config, 'headers'))
  for (const [name, value] of Object.entries(headers)) {
    if (!/^[!-9;-~]+$/.test(name)) throw new NodeError('header_invalid', `${JSON.stringify(name)} is no header name`)
    oneLine(value, name)
  }
  const [from] = addresses(config, 'from')
  const to = addresses(config, 'to')
  if (!from || to.length === 0) throw new NodeError('config_invalid', '"from" and "to" must hold addresses')
  return {
    to,
    cc: addresses(config, 'cc'),
    bcc: addresses(config, 'bcc'),
    from: { address: from.address, name: oneLine(optionalText(config, 'fromName') ?? from.name, 'fromName') },
    replyTo: addresses(config, 'replyTo')[0],
    subject: oneLine(text(config, 'subject'), 'subject'),
    body: text(config, 'body'),
    isHtml: config.html === true,
    headers,
  }
}

/** Addresses of a list or of text with commas, each with its name. */
function addresses(config: ValueMap, name: string): Address[] {
  const given = optionalText(config, name) ?? items(config, name).map(asText).join(', ')
  const parsed = parseAddresses(oneLine(given, name), { flatten: true })
  return parsed.map(({ name: person, address }) => {
    if (!/^[^\s@]+@[^\s@]+$/.test(address)) throw new NodeError('config_invalid', `"${name}" holds no valid address`)
    return { name: person, address }
  })
}

/** @throws NodeError header_invalid */
function oneLine(value: string, name: string): string {
  if (/[\r\n\0]/.test(value)) throw new NodeError('header_invalid', `"${name}" holds a line break`)
  return value
}
