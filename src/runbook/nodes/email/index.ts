import type { NodeExecutor } from '../../registry.ts'

const ADDRESSES = { type: ['string', 'array'], items: { type: 'string' } } as const

/** Mail by SMTP or SendGrid. Contract: runbook.md 5.3, 6.3. */
export const emailNode: NodeExecutor = {
  type: 'email',
  effects: 'external',
  timeoutMs: 30_000,
  inputSchema: {
    type: 'object',
    properties: {
      provider: { type: 'string', enum: ['smtp', 'sendgrid'], default: 'smtp', evaluation: 'constant' },
      to: { ...ADDRESSES, description: 'List, or text with commas' },
      cc: ADDRESSES,
      bcc: ADDRESSES,
      from: { type: 'string', minLength: 1 },
      fromName: { type: 'string' },
      replyTo: { type: 'string' },
      subject: { type: 'string' },
      body: { type: 'string' },
      html: { type: 'boolean', default: false },
      headers: { type: 'object' },
      host: { type: 'string', minLength: 1, default: 'localhost' },
      port: { type: 'integer', minimum: 1, maximum: 65_535, default: 587 },
      username: { type: 'string' },
      password: { type: 'string', sensitive: true },
      tls: {
        type: 'string',
        enum: ['starttls', 'implicit', 'none'],
        evaluation: 'constant',
        description: 'starttls, on port 465 implicit; none sends no login unless the host is this machine',
      },
      apiKey: { type: 'string', minLength: 1, sensitive: true, description: 'Required for sendgrid' },
    },
    required: ['to', 'from', 'subject', 'body'],
  },
  // the mail library loads with the first use
  execute: async (context) => (await import('./send.ts')).sendMail(context),
}
