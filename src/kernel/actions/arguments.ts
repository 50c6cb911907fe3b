import type { ActionCall } from '../model/action.ts'
import type { Binding } from '../model/binding.ts'
import type { SkillAction, Transport } from '../model/skill.ts'

/** What a transport gets: what the model gave, and what it has no say in. Contract: kernel-1.md 14.1, kernel-2.md 1 */

/** Arguments that the kernel fills in, whatever the model gave under these names. */
const runtimeNames = (transport: Transport, config: Binding['config']): Set<string> =>
  new Set([...Object.keys(transport.arguments), ...Object.keys(config)])

export interface Filled {
  arguments: Record<string, unknown>
  /** Those that the model did not choose. */
  resolvedArguments: ActionCall['resolvedArguments']
  /** Of `arguments`, those that the input schema is about. */
  checked: Record<string, unknown>
}

/** Fills in the literals and copies of the transport and the configuration of the binding. */
export function fillArguments(
  given: Record<string, unknown>,
  { inputSchema }: SkillAction,
  transport: Transport,
  config: Binding['config'],
): Filled {
  const names = runtimeNames(transport, config)
  const chosen = Object.fromEntries(Object.entries(given).filter(([name]) => !names.has(name)))
  const literals: Record<string, unknown> = { ...config }
  const copies: Record<string, unknown> = {}
  for (const [name, argument] of Object.entries(transport.arguments)) {
    if ('literal' in argument) literals[name] = argument.literal
    else if (Object.hasOwn(chosen, argument.sourceArgument)) copies[name] = chosen[argument.sourceArgument]
  }
  const filled = { ...chosen, ...copies, ...literals }
  const { properties = {} } = inputSchema
  const described = new Set(properties !== null && typeof properties === 'object' ? Object.keys(properties) : [])
  return {
    arguments: filled,
    resolvedArguments: Object.fromEntries(Object.keys(literals).map((name) => [name, { source: 'literal' as const }])),
    checked: Object.fromEntries(
      Object.entries(filled).filter(([name]) => Object.hasOwn(chosen, name) || described.has(name)),
    ),
  }
}

/** The input schema as a model sees it: without what it has no say in. */
export function schemaForModel(
  { inputSchema }: SkillAction,
  transport: Transport,
  config: Binding['config'],
): Record<string, unknown> {
  const { properties, required } = inputSchema
  const names = runtimeNames(transport, config)
  return {
    ...inputSchema,
    ...(properties !== null &&
      typeof properties === 'object' && {
        properties: Object.fromEntries(Object.entries(properties).filter(([name]) => !names.has(name))),
      }),
    ...(Array.isArray(required) && { required: required.filter((name) => !names.has(name)) }),
  }
}
