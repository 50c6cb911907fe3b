import { createTransport } from 'nodemailer'
import { isLoopback } from '../../../base/network.ts'
import { NodeError } from '../../errors.ts'
import { connectionError } from '../../outbound/guard.ts'
import type { NodeContext } from '../../registry.ts'
import { optionalText, text } from '../settings.ts'
import type { Delivery, Mail } from './send.ts'

const IMPLICIT_TLS_PORT = 465

/**
 * Sends over one connection, encrypted as asked or not at all. Contract: runbook.md 5.3.
 * @throws NodeError tls_failed, auth_failed, smtp_rejected, network_error
 */
export async function sendBySmtp(context: NodeContext, mail: Mail): Promise<Delivery> {
  const { config } = context
  const [host, port] = [text(config, 'host'), Number(config.port)]
  const mode = optionalText(config, 'tls') ?? (port === IMPLICIT_TLS_PORT ? 'implicit' : 'starttls')
  const user = optionalText(config, 'username')
  if (mode === 'none' && user !== undefined && !isLoopback(host)) {
    throw new NodeError('config_invalid', `no login at ${host} without encryption`)
  }
  const transport = createTransport({
    host,
    port,
    connection: await context.connect(host, port),
    secure: mode === 'implicit',
    requireTLS: mode === 'starttls',
    ignoreTLS: mode === 'none',
    ...(user !== undefined && { auth: { user, pass: text(config, 'password') } }),
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  try {
    return deliveryOf(await transport.sendMail(message(mail)))
  } catch (error) {
    context.signal.throwIfAborted()
    throw smtpError(error, host)
  } finally {
    transport.close()
  }
}

const message = ({ body, isHtml, replyTo, ...mail }: Mail) => ({
  ...mail,
  to: [...mail.to],
  cc: [...mail.cc],
  bcc: [...mail.bcc],
  ...(replyTo && { replyTo }),
  [isHtml ? 'html' : 'text']: body,
})

interface Sent {
  readonly messageId: string
  readonly accepted: readonly (string | { address: string })[]
  readonly rejected: readonly (string | { address: string })[]
}

/** A message that some recipients don't get counts as refused. */
function deliveryOf({ messageId, ...sent }: Sent): Delivery {
  const plain = (list: Sent['accepted']): string[] => list.map((to) => (typeof to === 'string' ? to : to.address))
  const [accepted, rejected] = [plain(sent.accepted), plain(sent.rejected)]
  if (rejected.length === 0) return { messageId, accepted, rejected }
  throw new NodeError('smtp_rejected', `recipients refused: ${rejected.join(', ')}`, { accepted, rejected })
}

function smtpError(error: unknown, host: string): NodeError {
  if (error instanceof NodeError || !(error instanceof Error) || !('code' in error)) return connectionError(error, host)
  if (error.code === 'EAUTH') return new NodeError('auth_failed', `${host} refuses the login`)
  const certificate = connectionError(error, host)
  const isTls = error.code === 'ETLS' || certificate.code === 'tls_failed' || /certificate|ssl|tls/i.test(error.message)
  if (isTls) return new NodeError('tls_failed', `no trusted connection to ${host}: ${error.message}`)
  if (!('responseCode' in error)) return certificate
  return new NodeError('smtp_rejected', `${host} refuses: ${error.message}`, { responseCode: error.responseCode })
}
