// The page of models: aliases, their shares, and the explainer.
import { editAlias } from './gateway-alias-form.js'
import { action, confirm, tell } from './gateway-dialog.js'
import { chip, el, empty, percent, state } from './gateway-elements.js'
import { explainer } from './gateway-explainer.js'
import { listing } from './gateway-listing.js'
import { page } from './gateway.js'
import { call, listAll } from './gateway-session.js'

const COLUMNS = [['Name'], ['Strategy'], ['Members', 'wide'], ['Then'], ['', 'end']]

function rowOf(alias, context) {
  const { name, scope, enabled, strategy, fallback_models: fallbacks } = alias
  const mayChange = scope === 'user' ? true : context.me.isAdmin
  return [
    el('span', {}, name, ' ', scope === 'user' && chip('private'), !enabled && state('off', 'disabled')),
    strategy,
    members(alias, context.credentials),
    fallbacks.join(', '),
    mayChange &&
      el(
        'div',
        { class: 'buttons' },
        action('Edit', () => editAlias(alias, context), { of: name }),
        action('Delete', () => remove(alias, context.show), { kind: 'danger', of: name }),
      ),
  ]
}

/** Each member with its share: only ratios of weights count, and only within the best priority. */
function members({ strategy, members: list }, credentials) {
  const of = (member, name, usual) => member[name] ?? credentials.get(member.credential_id)?.[name] ?? usual
  const first = Math.min(...list.map((member) => of(member, 'priority', 0)))
  const isFirst = (member) => of(member, 'priority', 0) === first
  const total = list.filter(isFirst).reduce((sum, member) => sum + of(member, 'weight', 1), 0)
  const shareOf = (member, i) => {
    if (strategy === 'ordered') return `${i + 1}.`
    return isFirst(member) && total > 0 ? percent(of(member, 'weight', 1) / total) : 'steps in'
  }
  return el(
    'ul',
    { class: 'members' },
    list.map((member, i) => {
      const credential = credentials.get(member.credential_id)
      const model = member.model ?? credential?.default_model
      const isOn = credential?.enabled ?? true
      return el(
        'li',
        {},
        el('strong', {}, shareOf(member, i)),
        el('span', {}, credential?.name ?? `credential ${member.credential_id}`, model && ` · ${model}`),
        credential && state(isOn ? credential.health.state : 'off', isOn ? credential.health.state : 'disabled'),
      )
    }),
  )
}

function remove({ id, name }, show) {
  confirm(`Delete ${name}?`, 'Clients that ask for it get an error from now on.', 'Delete', async () => {
    await call('DELETE', `model-groups/${id}`)
    await show()
    tell(`${name} is deleted.`)
  })
}

const WHAT =
  'An alias is a name of your own for one or more models: clients ask for it, and you decide what stands behind it, in which shares, and what takes over when one fails.'
const FIRST = el('a', { href: '/ui/gateway/credentials' }, 'Add a credential first')

page(async ({ me, show }) => {
  const [aliases, rows, keys, { data: models }] = await Promise.all([
    listAll('model-groups', 'model_groups'),
    listAll('credentials', 'credentials'),
    listAll('keys', 'keys'),
    call('GET', 'v1/models'),
  ])
  const credentials = new Map(rows.map((credential) => [credential.id, credential]))
  const context = { me, credentials, show }
  const add =
    rows.length === 0 ? FIRST : action('Add an alias', () => editAlias(undefined, context), { kind: 'primary' })
  return {
    buttons: [aliases.length > 0 && add],
    content: [
      explainer(credentials, keys, models),
      el('h2', {}, 'Aliases'),
      aliases.length === 0
        ? empty('No alias yet', WHAT, add)
        : listing(COLUMNS, aliases, {
            name: 'Aliases',
            textOf: ({ name, members: list }) =>
              [name, ...list.flatMap(({ credential_id: id, model }) => [credentials.get(id)?.name, model])].join(' '),
            rowOf: (alias) => rowOf(alias, context),
          }),
    ],
  }
})
