import { NodeError } from '../../errors.ts'
import { isMap, type Value, type ValueMap } from '../../hcl/values.ts'
import type { NodeExecutor } from '../../registry.ts'
import { items, map, optionalText, present, text } from '../settings.ts'
import { CHAT_TIMEOUT_MS, post, requireOneOf, sent, webhookOf, WHERE } from './send.ts'

/** Microsoft Teams. Contract: runbook.md 6.3. */
export const chatCNode: NodeExecutor = {
  type: 'chat_c',
  effects: 'external',
  timeoutMs: CHAT_TIMEOUT_MS,
  inputSchema: {
    type: 'object',
    properties: {
      ...WHERE,
      title: { type: 'string' },
      text: { type: 'string' },
      themeColor: { type: 'string', description: 'Hexadecimal, for message cards' },
      summary: { type: 'string' },
      sections: { type: 'array', items: { type: 'object' } },
      actions: { type: 'array', items: { type: 'object' } },
      card: { type: 'object', description: 'An adaptive card, or a whole message' },
      format: { type: 'string', enum: ['adaptive', 'message_card'], default: 'adaptive', evaluation: 'constant' },
    },
    anyOf: [{ required: ['card'] }, { required: ['text'] }, { required: ['title'] }, { required: ['sections'] }],
  },
  execute: async (context) => {
    requireOneOf(context, 'card', 'text', 'title', 'sections')
    const response = await post(context, webhookOf(context, 'chat_c', 'teams'), message(context.config))
    const answer = response.body.toString()
    // the service reports its own failures with status 200
    if (/\b(failed|error)\b/i.test(answer)) {
      throw new NodeError(
        /\b429\b/.test(answer) ? 'rate_limited' : 'service_rejected',
        `Teams refuses: ${answer.slice(0, 500)}`,
      )
    }
    return sent(response)
  },
}

function message(config: ValueMap): object {
  if (config.card !== undefined) {
    const card = map(config, 'card')
    return card.type === 'message' ? card : cardMessage(card)
  }
  return config.format === 'message_card' ? messageCard(config) : cardMessage(adaptiveCard(config))
}

const cardMessage = (content: object): object => ({
  type: 'message',
  attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content }],
})

const messageCard = (config: ValueMap): object => ({
  '@type': 'MessageCard',
  '@context': 'https://schema.org/extensions',
  ...present({
    summary: config.summary ?? config.title ?? config.text,
    title: config.title,
    text: config.text,
    themeColor: config.themeColor,
    sections: config.sections,
    potentialAction: config.actions,
  }),
})

function adaptiveCard(config: ValueMap): object {
  const actions = items(config, 'actions').filter(isMap).map(adaptiveAction)
  return {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    ...present({ fallbackText: config.summary }),
    body: [
      ...textBlock(config.title, { size: 'Large', weight: 'Bolder' }),
      ...textBlock(config.text),
      ...items(config, 'sections').filter(isMap).map(adaptiveSection),
    ],
    ...(actions.length > 0 && { actions }),
  }
}

const textBlock = (value: Value | undefined, style: object = {}): object[] =>
  value === undefined || value === '' ? [] : [{ type: 'TextBlock', text: value, wrap: true, ...style }]

/** Sections as message cards write them. */
function adaptiveSection(section: ValueMap): object {
  const facts = items(section, 'facts').filter(isMap)
  return {
    type: 'Container',
    separator: true,
    items: [
      ...textBlock(section.title ?? section.activityTitle, { weight: 'Bolder' }),
      ...textBlock(section.activitySubtitle, { isSubtle: true }),
      ...textBlock(section.text ?? section.activityText),
      ...(facts.length > 0
        ? [
            {
              type: 'FactSet',
              facts: facts.map((fact) => ({ title: fact.name ?? fact.title, value: text(fact, 'value') })),
            },
          ]
        : []),
    ],
  }
}

/** An action of an adaptive card as it is; `{title, url}` as a link. */
function adaptiveAction(action: ValueMap): object {
  if (action.type !== undefined) return action
  return {
    type: 'Action.OpenUrl',
    title: optionalText(action, 'title') ?? text(action, 'name'),
    url: text(action, 'url'),
  }
}
