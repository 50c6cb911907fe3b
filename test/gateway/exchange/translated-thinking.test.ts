import { describe, expect, test } from 'vitest'
import type { Candidate } from '../../../src/gateway/routing/candidate.ts'
import { anthropic, bedrock, gemini, openai, TOOL, vertex } from './candidates.ts'
import { bodyOf, bytesOf, candidateOf, chat, HI, messages, read, signatures } from './support.ts'

test('gateway#59 thinking takes no sampling; a budget on Bedrock is measured against a cap', () => {
  const asked = { reasoning_effort: 'high', temperature: 0.5 }
  const exchange = chat(anthropic, asked)
  expect(bodyOf(exchange)).not.toHaveProperty('temperature')
  expect(exchange.dropped).toEqual(['temperature'])
  const budget = candidateOf('bedrock', { model: 'anthropic.claude-x', row: { reasoning: 'budget' } })
  expect(bodyOf(chat(budget, { reasoning_effort: 'high' }))).toMatchObject({
    inferenceConfig: { maxTokens: 4096 },
    additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 3072 } },
  })
})

const THOUGHT = { type: 'thinking', thinking: 'hm', signature: 's1' }
const CALLED = {
  id: 'm',
  model: 'x',
  content: [
    THOUGHT,
    { type: 'redacted_thinking', data: 'r1' },
    { type: 'tool_use', id: 'call_62', name: 'rain', input: {} },
  ],
  stop_reason: 'tool_use',
}
const secondTurn = (id: string) => ({
  tools: [TOOL],
  reasoning_effort: 'high',
  messages: [
    ...HI,
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id, type: 'function', function: { name: 'rain', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: id, content: 'wet' },
  ],
})

describe('gateway#62 Claude thinks on with tools, though the client drops signatures', () => {
  test('the second turn carries what the first had', () => {
    expect(read(chat(anthropic, { tools: [TOOL] }).answer(bytesOf(CALLED)).body)).toMatchObject({
      choices: [
        { message: { reasoning_content: 'hm', thinking_blocks: [THOUGHT, { type: 'redacted_thinking', data: 'r1' }] } },
      ],
    })
    for (const candidate of [anthropic, vertex]) {
      const exchange = chat(candidate, secondTurn('call_62'))
      expect(bodyOf(exchange)).toMatchObject({ thinking: { type: 'adaptive' }, output_config: { effort: 'high' } })
      expect(bodyOf(exchange)['messages']).toMatchObject([
        {},
        {
          role: 'assistant',
          content: [THOUGHT, { type: 'redacted_thinking', data: 'r1' }, { type: 'tool_use', id: 'call_62' }],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_62' }] },
      ])
    }
    expect(JSON.stringify(bodyOf(chat(bedrock, secondTurn('call_62'))))).toContain(
      '{"reasoningText":{"text":"hm","signature":"s1"}}',
    )
  })

  test('lost, or of another organization: without thinking, and named', () => {
    const lost = chat(anthropic, secondTurn('call_unknown'))
    expect(lost.dropped).toEqual(['reasoning_effort'])
    expect(bodyOf(lost)).not.toHaveProperty('thinking')
    expect(chat(anthropic, secondTurn('call_62'), { organizationId: 8 }).dropped).toEqual(['reasoning_effort'])
  })
})

describe('gateway#63 calls of Gemini', () => {
  const part = { functionCall: { name: 'rain', args: { at: 1 } }, thoughtSignature: 'g1' }
  const answer = {
    candidates: [{ content: { parts: [part, { functionCall: { name: 'rain' } }] }, finishReason: 'STOP' }],
  }
  const idsOf = (body: Buffer): string[] =>
    [...body.toString().matchAll(/"id":"(call_[^"]+)"/g)].map(([, id]) => id ?? '')

  test('get ids that stay the same for the same conversation, and differ otherwise', () => {
    const first = idsOf(chat(gemini).answer(bytesOf(answer)).body)
    expect(new Set(first).size).toBe(2)
    expect(idsOf(chat(gemini).answer(bytesOf(answer)).body)).toEqual(first)
    const next = idsOf(chat(gemini, { messages: [...HI, ...HI] }).answer(bytesOf(answer)).body)
    expect(next).not.toEqual(first)
  })

  test('of another answer to an equal request have other ids, so that signatures do not cross', () => {
    const idOf = (responseId: string | undefined, name: string, thoughtSignature: string) => {
      const parts = [{ functionCall: { name }, thoughtSignature }]
      return idsOf(chat(gemini).answer(bytesOf({ responseId, candidates: [{ content: { parts } }] })).body)[0] ?? ''
    }
    const ids = [
      idOf('r1', 'rain', 'g1'),
      idOf('r2', 'rain', 'g1'),
      idOf(undefined, 'rain', 'g1'),
      idOf(undefined, 'wind', 'g1'),
      idOf(undefined, 'wind', 'g2'),
    ]
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids.map((id) => signatures.find(7, id)?.signature)).toEqual(['g1', 'g1', 'g1', 'g1', 'g2'])
  })

  test('get their signature back, from the client or from memory; else the placeholder', () => {
    const { body } = chat(gemini).answer(bytesOf(answer))
    expect(body.toString()).toContain('"extra_content":{"google":{"thought_signature":"g1"}}')
    const [id = ''] = idsOf(body)
    const sent = (call: string) => JSON.stringify(bodyOf(chat(gemini, secondTurn(call)))['contents'])
    expect(sent(id)).toContain('"thoughtSignature":"g1"')
    expect(sent('call_lost')).toContain('"thoughtSignature":"skip_thought_signature_validator"')
    const use = [
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'rain', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'wet' }] },
    ]
    expect(JSON.stringify(bodyOf(messages(gemini, { messages: use })))).toContain('"thoughtSignature":"g1"')
    expect(signatures.find(8, id)).toBeUndefined()
  })
})

describe('gateway#64 thoughts go back to the family that had them', () => {
  const answered = (candidate: Candidate, answer: object) =>
    read(messages(candidate).answer(bytesOf(answer)).body)['content']
  const geminis = {
    candidates: [{ content: { parts: [{ text: 'hm-g', thought: true }, { text: 'so' }] }, finishReason: 'STOP' }],
  }
  const openais = { choices: [{ message: { reasoning_content: 'hm-o', content: 'so' }, finish_reason: 'stop' }] }
  const sent = (candidate: Candidate, content: unknown) =>
    JSON.stringify(bodyOf(messages(candidate, { messages: [...HI, { role: 'assistant', content }, ...HI] })))

  test('as an anthropic client returns them', () => {
    const [ofGemini, ofOpenAi] = [answered(gemini, geminis), answered(openai, openais)]
    expect(ofGemini).toMatchObject([
      { type: 'thinking', thinking: 'hm-g' },
      { type: 'text', text: 'so' },
    ])
    expect(sent(gemini, ofGemini)).toContain('hm-g')
    expect(sent(openai, ofOpenAi)).toContain('"reasoning_content":"hm-o"')
    for (const [candidate, content] of [
      [openai, ofGemini],
      [bedrock, ofGemini],
      [gemini, ofOpenAi],
      [bedrock, ofOpenAi],
    ] as const) {
      expect(sent(candidate, content)).not.toContain('hm-')
    }
    expect(sent(bedrock, [THOUGHT, { type: 'text', text: 'so' }])).toContain('"signature":"s1"')
    expect(sent(openai, [THOUGHT, { type: 'text', text: 'so' }])).not.toContain('hm')
  })

  test('a turn of nothing but thoughts of another is left out: providers refuse turns that hold nothing', () => {
    for (const candidate of [anthropic, gemini, bedrock]) {
      const silent = { role: 'assistant', content: '', reasoning_content: 'hm' }
      const { messages: turns, contents } = bodyOf(chat(candidate, { messages: [...HI, silent, ...HI] }))
      expect(turns ?? contents).toMatchObject([{ role: 'user' }])
      expect(JSON.stringify(turns ?? contents).match(/"hi"/g)).toHaveLength(2)
    }
    expect(sent(gemini, [THOUGHT])).not.toContain('"parts":[]')
    expect(sent(bedrock, [THOUGHT])).toContain('"signature":"s1"')
  })

  test('spaces beside such thoughts are nothing to Claude either, and its neighbours are one turn', () => {
    for (const candidate of [anthropic, bedrock]) {
      const silent = { role: 'assistant', content: '\n\n', reasoning_content: 'hm' }
      const { messages: turns } = bodyOf(chat(candidate, { messages: [...HI, silent, ...HI] }))
      expect(turns).toMatchObject([{ role: 'user', content: [{ text: 'hi' }, { text: 'hi' }] }])
    }
  })

  test('on a relay to Claude too, which refuses what it has not signed', () => {
    const ofGemini = answered(gemini, geminis)
    const said = [...HI, { role: 'assistant', content: ofGemini }, ...HI]
    const relayed = messages(anthropic, { messages: said, thinking: null })
    expect(bodyOf(relayed)).toMatchObject({
      messages: [...HI, { role: 'assistant', content: [{ type: 'text', text: 'so' }] }, ...HI],
      thinking: null,
    })
    expect(relayed.dropped).toEqual([])
    const alone = { type: 'thinking', thinking: 'hm', signature: 'unsigned:openai' }
    const quoted = { type: 'text', text: 'it says "unsigned:gemini"' }
    const mixed = [
      { role: 'assistant', content: [alone] },
      { role: 'user', content: [quoted, { ...quoted }] },
    ]
    expect(bodyOf(messages(anthropic, { messages: mixed }))['messages']).toEqual(mixed.slice(1))
    const own = [...HI, { role: 'assistant', content: [THOUGHT, alone, quoted, alone] }]
    expect(bodyOf(messages(anthropic, { messages: own }))['messages']).toEqual([
      ...HI,
      { role: 'assistant', content: [THOUGHT, quoted] },
    ])
  })
})
