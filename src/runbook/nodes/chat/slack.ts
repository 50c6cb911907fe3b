import { NodeError } from '../../errors.ts'
import { isMap } from '../../hcl/values.ts'
import type { NodeExecutor } from '../../registry.ts'
import { decodeBody } from '../answers.ts'
import { optionalText, present, text } from '../settings.ts'
import { CHAT_TIMEOUT_MS, post, requireOneOf, sent, webhookOf, WHERE } from './send.ts'

const POST_MESSAGE = 'https://slack.com/api/chat.postMessage'

/** Slack, by incoming webhook or, with a token, by the Web API. Contract: runbook.md 6.3. */
export const chatANode: NodeExecutor = {
  type: 'chat_a',
  effects: 'external',
  timeoutMs: CHAT_TIMEOUT_MS,
  inputSchema: {
    type: 'object',
    properties: {
      ...WHERE,
      text: { type: 'string' },
      username: { type: 'string' },
      iconEmoji: { type: 'string' },
      blocks: { type: 'array', items: { type: 'object' } },
      attachments: { type: 'array', items: { type: 'object' } },
      token: { type: 'string', minLength: 1, sensitive: true, description: 'Uses chat.postMessage, needs channel' },
      threadTs: { type: 'string' },
    },
    anyOf: [{ required: ['text'] }, { required: ['blocks'] }, { required: ['attachments'] }],
  },
  execute: async (context) => {
    const { config } = context
    requireOneOf(context, 'text', 'blocks', 'attachments')
    const token = optionalText(config, 'token')
    const isDirect = token !== undefined || config.webhookUrl !== undefined
    const message = present({
      channel: isDirect ? config.channel : undefined,
      text: config.text,
      username: config.username,
      icon_emoji: config.iconEmoji,
      blocks: config.blocks,
      attachments: config.attachments,
      thread_ts: config.threadTs,
    })
    if (token === undefined) return sent(await post(context, webhookOf(context, 'chat_a', 'slack'), message))
    if (config.channel === undefined) throw new NodeError('config_invalid', '"channel" is required with "token"')
    const response = await post(context, POST_MESSAGE, message, { authorization: `Bearer ${token}` })
    const answer = decodeBody(response)
    if (!isMap(answer) || answer.ok !== true) {
      const code = isMap(answer) ? text(answer, 'error') : ''
      throw new NodeError(code === 'ratelimited' ? 'rate_limited' : 'service_rejected', `Slack refuses: ${code}`, {
        service: code,
      })
    }
    return sent(response, { ts: answer.ts ?? null, channel: answer.channel ?? null })
  },
}
