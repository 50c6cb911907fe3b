// The form of an alias, new or known.
import { action, openDialog, tell } from './gateway-dialog.js'
import { check, choices, el, field, input, lines, numbers, numeric, pair, select } from './gateway-elements.js'
import { call, change } from './gateway-session.js'

const STRATEGIES = [
  ['weighted', 'weighted: shares by weight'],
  ['ordered', 'ordered: the first that works'],
]
const CLASSES = [
  ['connect', 'cannot be reached'],
  ['transient', 'fails, or is silent'],
  ['rate', 'is busy'],
  ['auth', 'refuses the key'],
  ['missing', 'does not have the model'],
  ['context', 'finds the prompt too long'],
  ['filtered', 'filters the content'],
]
const USUAL = ['connect', 'transient', 'rate', 'auth', 'missing']

export function editAlias(alias, { me, credentials, show }) {
  const rows = el('div')
  const scope = alias?.scope ?? (me.isAdmin ? 'organization' : 'user')
  const members = alias?.members ?? []
  for (const member of members.length === 0 ? [{}] : members) rows.append(memberRow(member, credentials))
  openDialog({
    title: alias ? `Edit ${alias.name}` : 'Add an alias',
    isWide: true,
    submit: alias ? 'Save' : 'Add',
    fields: [
      pair(
        field('Name', input('name', alias?.name, { required: true, maxlength: 128 })),
        field('Strategy', select('strategy', STRATEGIES, alias?.strategy)),
      ),
      el('h3', {}, 'Members'),
      rows,
      action('Add a member', () => rows.append(memberRow({}, credentials))),
      field(
        'Then these models',
        input('fallback_models', alias?.fallback_models.join(', '), { list: 'names' }),
        'tried in turn when all members fail; 5 at most',
      ),
      el('details', {}, el('summary', {}, 'When the next is tried, answers kept, output cap'), moreFields(alias)),
      alias === undefined && me.isAdmin
        ? check('private', false, 'Private: only I see and use it')
        : el(
            'p',
            { class: 'muted small' },
            scope === 'user' ? 'Private: only you see and use it.' : 'Shared by the organization.',
          ),
      check('enabled', alias?.enabled ?? true, 'Enabled'),
    ],
    async onSubmit(form) {
      const body = { ...requestOf(form), scope: scope === 'user' || form.has('private') ? 'user' : 'organization' }
      await (alias ? change(`model-groups/${alias.id}`, alias, body) : call('POST', 'model-groups', body))
      await show()
      tell(`${body.name} is ${alias ? 'saved' : 'added'}.`)
    },
  })
}

const ITS_OWN = { min: 0, placeholder: 'its own' }

function memberRow(member, credentials) {
  const names = [...credentials.values()].map(({ id, name }) => [id, name])
  const row = el(
    'div',
    { class: 'member', role: 'group', 'aria-label': 'Member' },
    field('Credential', select('credential_id', names, member.credential_id)),
    field('Model', input('model', member.model, { placeholder: 'its default' })),
    field('Weight', numeric('weight', member.weight, { ...ITS_OWN, max: 1000, step: 0.001 })),
    field('Priority', numeric('priority', member.priority, { ...ITS_OWN, max: 100 })),
    action('Remove', () => row.remove(), { kind: 'quiet danger' }),
  )
  return row
}

const moreFields = (alias) => [
  choices(
    'The next is tried when one',
    CLASSES.map(([name, label]) => check('fallback_on', (alias?.fallback_on ?? USUAL).includes(name), label, name)),
  ),
  pair(
    field('Keep answers for', numeric('cache_ttl', alias?.cache_ttl, { max: 86_400 }), 'seconds; empty: not'),
    field('Output cap', numeric('max_output_tokens', alias?.max_output_tokens), 'tokens; empty: none'),
  ),
]

const requestOf = (form) => ({
  name: form.get('name').trim(),
  strategy: form.get('strategy'),
  members: membersOf(form),
  fallback_models: lines(form.get('fallback_models')),
  fallback_on: form.getAll('fallback_on'),
  ...numbers(form, ['cache_ttl', 'max_output_tokens']),
  enabled: form.has('enabled'),
})

function membersOf(form) {
  const [models, weights, priorities] = ['model', 'weight', 'priority'].map((name) => form.getAll(name))
  return form.getAll('credential_id').map((id, i) => ({
    credential_id: Number(id),
    ...(models[i] && { model: models[i] }),
    ...(weights[i] && { weight: Number(weights[i]) }),
    ...(priorities[i] && { priority: Number(priorities[i]) }),
  }))
}
