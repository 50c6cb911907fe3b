import { invalid } from '../errors.ts'
import type { Binding } from '../model/binding.ts'
import { transportOf, type SkillAction, type SkillDefinition } from '../model/skill.ts'
import { exceeds } from '../policy.ts'

type Fields = Pick<
  Binding,
  'allowedActions' | 'enablePrompt' | 'maximumRisk' | 'argumentRestrictions' | 'credentials' | 'config'
>

/** Checks that a binding fits its skill. @throws invalid naming the first place that does not */
export function checkBinding(binding: Fields, skill: SkillDefinition): void {
  const { allowedActions, enablePrompt, maximumRisk, config } = binding
  if (enablePrompt && !skill.prompt) throw invalid(`binding.enablePrompt: skill ${skill.id} has no prompt`)
  if (allowedActions.length === 0 && !enablePrompt) throw invalid('binding.allowedActions must name an action')
  for (const name of allowedActions) {
    const action = Object.hasOwn(skill.actions, name) ? skill.actions[name] : undefined
    if (!action) throw invalid(`binding.allowedActions: skill ${skill.id} has no action ${name}`)
    if (exceeds(action.risk, maximumRisk)) {
      throw invalid(`binding.maximumRisk ${maximumRisk} is below the ${action.risk} of action ${name}`)
    }
    const collision = Object.keys(transportOf(skill, action)?.arguments ?? {}).find((key) => Object.hasOwn(config, key))
    if (collision !== undefined) throw invalid(`binding.config.${collision} is set by the transport of action ${name}`)
  }
  checkRestrictions(binding, skill)
  checkCredentials(binding, skill)
}

function checkRestrictions({ argumentRestrictions }: Fields, skill: SkillDefinition): void {
  for (const [name, restrictions] of Object.entries(argumentRestrictions)) {
    const action = Object.hasOwn(skill.actions, name) ? skill.actions[name] : undefined
    if (!action) throw invalid(`binding.argumentRestrictions: skill ${skill.id} has no action ${name}`)
    for (const [field, { const: only, enum: several }] of Object.entries(restrictions)) {
      const at = `binding.argumentRestrictions.${name}.${field}`
      if (!fieldsOf(action).has(field)) throw invalid(`${at}: action ${name} has no such argument`)
      if ((only === undefined) === (several === undefined)) throw invalid(`${at} must have const or enum`)
    }
  }
}

function fieldsOf({ inputSchema: { properties } }: SkillAction): Set<string> {
  return new Set(properties !== null && typeof properties === 'object' ? Object.keys(properties) : [])
}

/** What is referred to is asked for somewhere in the skill, in this kind; what must be there is. */
function checkCredentials({ allowedActions, enablePrompt, credentials }: Fields, skill: SkillDefinition): void {
  const ofPrompt = skill.prompt?.credentials ?? []
  const asked = [...Object.values(skill.actions).flatMap((action) => action.credentials), ...ofPrompt]
  for (const [name, { kind }] of Object.entries(credentials)) {
    const requirement = asked.find((one) => one.name === name)
    if (!requirement) throw invalid(`binding.credentials.${name}: skill ${skill.id} asks for no such credential`)
    if (requirement.kind !== kind) throw invalid(`binding.credentials.${name} must be of kind ${requirement.kind}`)
  }
  const needed = [
    ...allowedActions.flatMap((name) => skill.actions[name]?.credentials ?? []),
    ...(enablePrompt ? ofPrompt : []),
  ]
  const missing = needed.find(({ name, optional }) => !optional && !Object.hasOwn(credentials, name))
  if (missing) throw invalid(`binding.credentials.${missing.name} is required, of kind ${missing.kind}`)
}
