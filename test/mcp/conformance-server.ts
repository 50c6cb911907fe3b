/**
 * The server that the official conformance suite of the tools protocol is run against (scripts/mcp-conformance.mjs): our
 * listener, guards, sessions and frames over the memory tools, and the fixture tools that the suite asks for.
 * Prints its URL; ends with its standard input.
 */
import { createMemory } from '../../src/app/memory.ts'
import { systemClock } from '../../src/base/clock.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createListener } from '../../src/http/listener.ts'
import { mcpRoutes, mountMcpSocket } from '../../src/mcp/http.ts'
import type { SessionParts } from '../../src/mcp/session.ts'
import { MemoryError } from '../../src/memory/errors.ts'
import { mountMemory } from '../../src/memory/routes/index.ts'
import { MemoryTools, type ToolDescription } from '../../src/memory/tools/index.ts'

interface Fixture {
  answer: () => object
  inputSchema?: Record<string, unknown>
}

const object = (properties: object): object => ({ type: 'object', properties })
const text = { type: 'string' }

/** Names and schemas are the suite's; what the answers say is not looked at. */
const FIXTURES: Readonly<Record<string, Fixture>> = {
  test_simple_text: { answer: () => ({ text: 'simple' }) },
  test_error_handling: {
    answer: () => {
      throw new MemoryError('not_found', 'this tool always fails')
    },
  },
  test_streaming_elicitation: { answer: () => ({ text: 'asks nothing' }) },
  test_logging_tool: { answer: () => ({ text: 'logs nothing' }) },
  json_schema_2020_12_tool: {
    answer: () => ({}),
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: { address: { $anchor: 'addressDef', ...object({ street: text, city: text }) } },
      properties: {
        name: text,
        address: { $ref: '#/$defs/address' },
        contactMethod: { ...text, enum: ['phone', 'email'] },
        phone: text,
        email: text,
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      // oxlint-disable-next-line unicorn/no-thenable -- a key of JSON Schema
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
  },
}

/** The first tool must be callable without arguments. */
function withFixtures(tools: MemoryTools): SessionParts['tools'] {
  const fixtures = Object.entries(FIXTURES).map(([name, { inputSchema = { type: 'object' } }]): ToolDescription => ({
    name,
    description: 'A fixture.',
    inputSchema,
    outputSchema: { type: 'object' },
    annotations: { readOnlyHint: true },
  }))
  return {
    descriptions: [...fixtures, ...tools.descriptions],
    verify: (claim) => tools.verify(claim),
    prepare: (name, args, peer, pinned) => {
      const fixture = FIXTURES[name]
      return fixture ? async () => JSON.stringify(fixture.answer()) : tools.prepare(name, args, peer, pinned)
    },
  }
}

const config = loadConfig({ flags: { 'data-dir': process.argv[2] }, env: {} })
const telemetry = { ...config.telemetry, log_level: 'error' as const }
const { service, ids, log, close } = await createMemory({ ...config, telemetry }, systemClock)
const access = { apiKey: undefined, apiKeyId: undefined, multiTenant: false, guardLoopback: true, timeoutMs: 30_000 }
const listener = createListener({ log, ids, timeoutMs: access.timeoutMs, allowedOrigins: [] })
const parts = { tools: withFixtures(new MemoryTools(service, ids, access.timeoutMs)), log, apiKey: undefined }
mountMcpSocket(listener, parts, access)
mountMemory(listener, service, { ...access, allowedOrigins: [] }, mcpRoutes(parts, access))
console.log(await listener.listen({ host: '127.0.0.1', port: 0 }))
process.stdin.resume().once('end', () => void listener.close().then(close))
