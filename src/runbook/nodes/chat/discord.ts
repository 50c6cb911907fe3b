import { isMap } from '../../hcl/values.ts'
import { NodeError } from '../../errors.ts'
import type { NodeExecutor } from '../../registry.ts'
import { decodeBody } from '../answers.ts'
import { optionalText, present } from '../settings.ts'
import { CHAT_TIMEOUT_MS, post, requireOneOf, sent, webhookOf, WHERE } from './send.ts'

/** Discord; nobody is notified by a mention unless allowed. Contract: runbook.md 6.3. */
export const chatBNode: NodeExecutor = {
  type: 'chat_b',
  effects: 'external',
  timeoutMs: CHAT_TIMEOUT_MS,
  inputSchema: {
    type: 'object',
    properties: {
      ...WHERE,
      content: { type: 'string', maxLength: 2000 },
      username: { type: 'string' },
      avatarUrl: { type: 'string', format: 'url' },
      embeds: { type: 'array', items: { type: 'object' }, maxItems: 10 },
      allowMentions: { type: 'boolean', default: false },
      threadId: { type: 'string' },
    },
    anyOf: [{ required: ['content'] }, { required: ['embeds'] }],
  },
  execute: async (context) => {
    const { config } = context
    requireOneOf(context, 'content', 'embeds')
    const response = await post(
      context,
      messageUrl(webhookOf(context, 'chat_b', 'discord'), optionalText(config, 'threadId')),
      {
        ...present({
          content: config.content,
          username: config.username,
          avatar_url: config.avatarUrl,
          embeds: config.embeds,
        }),
        ...(config.allowMentions !== true && { allowed_mentions: { parse: [] } }),
      },
    )
    const message = decodeBody(response)
    return sent(response, { messageId: isMap(message) ? (message.id ?? null) : null })
  },
}

/** `wait` asks for the created message. */
function messageUrl(webhook: string, threadId: string | undefined): string {
  if (!URL.canParse(webhook)) throw new NodeError('config_invalid', '"webhookUrl" is no URL')
  const url = new URL(webhook)
  url.searchParams.set('wait', 'true')
  if (threadId !== undefined) url.searchParams.set('thread_id', threadId)
  return url.href
}
