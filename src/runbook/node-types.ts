/** What `--dry-run` may execute, and what a resume asks about. */
export type Effects = 'none' | 'read' | 'external'

export type Category =
  'control' | 'data' | 'response' | 'communication' | 'action' | 'trigger' | 'tool' | 'orchestrator'

/** `always`: every registry has it; `client`: one with an orchestrator client; `trigger`: handled before look-up. */
type Availability = 'always' | 'in-cluster' | 'trigger' | 'none' | 'client'

interface BuiltInType {
  readonly type: string
  readonly category: Category
  readonly availability: Availability
  readonly effects: Effects
  readonly aliases: readonly string[]
}

const group = (
  category: Category,
  availability: Availability,
  effects: Effects,
  names: string,
  aliases: Readonly<Record<string, string[]>> = {},
): BuiltInType[] =>
  names.split(' ').map((type) => ({ type, category, availability, effects, aliases: aliases[type] ?? [] }))

const orchestrator = (effects: Effects, verbs: string): BuiltInType[] =>
  verbs.split(' ').map((verb) => ({
    type: `orch_${verb}`,
    category: 'orchestrator',
    availability: 'client',
    effects,
    aliases: [`k8s-${verb}`, `k8s_${verb}`],
  }))

/** The 36 types. Contract: runbook.md 1. */
export const BUILT_IN_TYPES: readonly BuiltInType[] = [
  ...group('control', 'always', 'none', 'if switch delay join loop'),
  ...group('data', 'always', 'none', 'transform set merge filter sort aggregate split'),
  ...group('response', 'always', 'none', 'webhook_response'),
  ...group('communication', 'always', 'external', 'chat_a chat_b chat_c email', {
    chat_a: ['slack'],
    chat_b: ['discord'],
    chat_c: ['teams'],
  }),
  ...group('action', 'always', 'external', 'http ai vectordb', { vectordb: ['pgvector'] }),
  ...group('action', 'in-cluster', 'external', 'code'),
  ...group('trigger', 'trigger', 'none', 'webhook cron manual'),
  ...group('tool', 'none', 'none', 'tool_debug tool_mcp tool_memory tool_vectordb', {
    tool_vectordb: ['tool_pgvector'],
  }),
  ...orchestrator('read', 'get list logs events'),
  ...orchestrator('external', 'restart scale patch delete'),
]

const BY_NAME = new Map(
  BUILT_IN_TYPES.flatMap((type) => [type.type, ...type.aliases].map((name) => [name, type] as const)),
)

/** A built-in type by its name or an alias. */
export const builtInType = (name: string): BuiltInType | undefined => BY_NAME.get(name)

export const builtInNames = (): string[] => [...BY_NAME.keys()]
