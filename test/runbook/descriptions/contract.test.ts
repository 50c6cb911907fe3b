import { expect, test } from 'vitest'
import { nodeDescription } from '../../../src/runbook/descriptions.ts'

/** Attributes of section 6 by type: `name*` is required, `name=default`, `name!` constant, `name~` evaluated per item. */
const ATTRIBUTES: Readonly<Record<string, string>> = {
  if: 'condition*',
  switch: 'expression* cases*!',
  delay: 'duration seconds milliseconds',
  join: 'mode!="all" cancelOthers!=false',
  loop: 'items* itemVar!="item" indexVar!="index" join! concurrency=1 maxIterations=10000 onItemError="fail"',
  filter: 'items* condition*~',
  sort: 'items* field by~ order="asc"',
  aggregate: 'items* operation* field value~',
  transform: 'template*',
  set: 'name variable value variables',
  merge: 'sources* strategy!="merge"',
  split: 'failFast executionMode concurrency',
  webhook_response: 'statusCode=200 contentType="application/json" body headers',
  chat_a: 'webhookUrl channel text username iconEmoji blocks attachments token threadTs',
  chat_b: 'webhookUrl channel content username avatarUrl embeds allowMentions=false threadId',
  chat_c: 'webhookUrl channel title text themeColor summary sections actions card format!="adaptive"',
  email:
    'provider!="smtp" to* cc bcc from* fromName replyTo subject* body* html=false headers host="localhost" port=587 username password tls! apiKey',
  http: 'url* query method="GET" headers body auth file fileField="file" expectStatus=["2xx","3xx"] responseType!="auto" maxRedirects=5 maxResponseBytes=10485760',
  ai: 'provider="openai" prompt* systemPrompt model temperature maxTokens=1000 apiKey baseUrl ollamaUrl="http://localhost:11434" responseFormat!="text" schema file tools maxToolIterations=10',
  code: 'code*! language!="python" inputs requirements! stream=false cpu memory image',
  webhook: 'path method="POST" responseMode="async" inputs secret',
  cron: 'expression* timezone="UTC" inputs',
  manual: 'confirmation=false inputs',
  tool_debug: 'toolName toolDescription level="info" includeRaw=false',
  tool_mcp: 'toolName* toolDescription* command* args env tool',
}

test.each(Object.keys(ATTRIBUTES))('runbook#133 %s has the attributes of the contract', async (type) => {
  const { inputSchema: { properties = {}, required = [] } = {} } = (await nodeDescription(type)) ?? {}
  const shown = Object.entries(properties).map(([name, { default: fallback, evaluation }]) => {
    const mark = evaluation === 'constant' ? '!' : evaluation === 'item' ? '~' : ''
    return `${name}${required.includes(name) ? '*' : ''}${mark}${fallback === undefined ? '' : `=${JSON.stringify(fallback)}`}`
  })
  expect(shown.toSorted()).toEqual((ATTRIBUTES[type] ?? '').split(/ (?![^[]*\])/).toSorted())
})
