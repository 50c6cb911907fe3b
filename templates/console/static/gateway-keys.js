// The page of virtual keys.
import { action, confirm, openDialog, showToken, tell } from './gateway-dialog.js'
import { el, empty, field, numbers, numeric, state, under, usd, utc } from './gateway-elements.js'
import { editKey, keptOf } from './gateway-key-form.js'
import { listing } from './gateway-listing.js'
import { page } from './gateway.js'
import { call, listAll, peopleOf } from './gateway-session.js'

const COLUMNS = [['Name'], ['For'], ['Models', 'mid'], ['Budget'], ['State'], ['', 'end']]

function rowOf(key, context) {
  const { name, prefix, last4, user_id: userId, allowed_models: allowed, allowed_credentials: on } = key
  return [
    el('span', {}, name, under(el('code', {}, `${prefix}…${last4}`))),
    userId === undefined ? 'the organization' : (context.people.get(userId) ?? `user ${userId}`),
    el(
      'span',
      {},
      allowed.length === 0 ? 'any' : allowed.join(', '),
      on.length > 0 && under(`on ${on.length} of the credentials`),
    ),
    budgetOf(key),
    stateOf(key),
    actionsOf(key, context),
  ]
}

function budgetOf({ budget, spent_usd: spent, window_resets_at: reset }) {
  if (!budget) return 'none'
  const span = budget.window === 'total' ? 'in all' : `a ${budget.window}`
  const limit = Number(budget.limit_usd)
  const told = `${usd(spent)} of ${usd(budget.limit_usd)}`
  const meter = el('meter', { min: 0, max: limit || 1, value: Number(spent), 'aria-label': `${told} spent` })
  return el('span', {}, `${told} ${span}`, el('div', {}, meter), reset && under('until ', utc(reset)))
}

function stateOf({ enabled, expires_at: end, last_used_at: used }) {
  const isOver = end !== undefined && Date.parse(end) <= Date.now()
  const name = isOver ? state('off', 'ended') : enabled ? state('enabled') : state('off', 'disabled')
  return el(
    'span',
    {},
    name,
    under(used ? ['last used ', utc(used)] : 'never used'),
    end && under(isOver ? 'ended ' : 'ends ', utc(end)),
  )
}

function actionsOf(key, context) {
  const { id, name, enabled } = key
  const toggle = async () => {
    // Another tab may have changed it since the page was shown.
    const now = await call('GET', `keys/${id}`)
    await call('PUT', `keys/${id}`, { ...keptOf(now), enabled: !enabled })
    await context.show()
    tell(`${name} is ${enabled ? 'disabled' : 'enabled'}.`)
  }
  return el(
    'div',
    { class: 'buttons' },
    context.mayMake && action('Edit', () => editKey(key, context), { of: name }),
    action('Rotate', () => rotate(key, context.show), { of: name }),
    context.mayMake && action(enabled ? 'Disable' : 'Enable', toggle, { of: name }),
    action('Delete', () => remove(key, context.show), { kind: 'danger', of: name }),
  )
}

function rotate({ id, name }, show) {
  openDialog({
    title: `Rotate ${name}`,
    fields: [
      el('p', {}, 'Makes a new token. The old one ends at once, or after a while in which both work.'),
      field(
        'The old one works for',
        numeric('grace_seconds', 0, { min: 0, max: 86_400 }),
        'more seconds, a day at most',
      ),
    ],
    submit: 'Rotate',
    async onSubmit(form) {
      const { token } = await call('POST', `keys/${id}/rotate`, numbers(form, ['grace_seconds']))
      await show()
      showToken(`The key ${name}`, token)
    },
  })
}

function remove({ id, name }, show) {
  confirm(`Delete ${name}?`, 'Whoever uses it is refused from now on.', 'Delete', async () => {
    await call('DELETE', `keys/${id}`)
    await show()
    tell(`${name} is deleted.`)
  })
}

const WHAT =
  'A virtual key is what a program or an agent brings instead of a provider’s key: it may be limited to models, rates and a budget, and ends when you say so.'

page(async ({ me, show }) => {
  const [keys, credentials, people, settings] = await Promise.all([
    listAll('keys', 'keys'),
    listAll('credentials', 'credentials'),
    peopleOf(me),
    call('GET', 'settings'),
  ])
  const mayMake = me.isAdmin ? true : settings.member_keys
  const context = { me, credentials, people, mayMake, show }
  const add = mayMake && action('Add a key', () => editKey(undefined, context), { kind: 'primary' })
  if (keys.length === 0) return { content: [empty('No key yet', WHAT, mayMake ? add : 'Ask an admin for one.')] }
  return {
    buttons: [add],
    content: [
      listing(COLUMNS, keys, {
        name: 'Keys',
        textOf: ({ name, prefix, last4, user_id: userId }) => `${name} ${prefix}…${last4} ${people.get(userId) ?? ''}`,
        rowOf: (key) => rowOf(key, context),
      }),
    ],
  }
})
