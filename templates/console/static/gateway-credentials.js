// The page of credentials.
import { editCredential, tested } from './gateway-credential-form.js'
import { action, confirm, openDialog, tell } from './gateway-dialog.js'
import { chip, el, empty, field, input, select, state, texts, time, under, utc } from './gateway-elements.js'
import { listing } from './gateway-listing.js'
import { page } from './gateway.js'
import { call, listAll } from './gateway-session.js'

const COLUMNS = [
  ['Name'],
  ['Health', 'wide'],
  ['Models', 'mid'],
  ['Weight', 'num'],
  ['Priority', 'num'],
  ['Last used, UTC'],
  ['', 'end'],
]

function rowOf(credential, context) {
  const { name, provider, scope, weight, priority, last_used_at: used } = credential
  return [
    el('span', {}, name, ' ', scope === 'user' && chip('private'), under(provider)),
    healthOf(credential),
    modelsOf(credential),
    String(weight),
    String(priority),
    used ? time(used) : 'never',
    // Members see of shared ones that they are there.
    credential.config !== undefined && actionsOf(credential, context),
  ]
}

function healthOf({ enabled, health, last_error: error }) {
  const resting = health.models.map(({ model, state: name, until }) =>
    under(`${model}: ${name} until ${until.slice(11, 19)} UTC`),
  )
  return el(
    'span',
    {},
    enabled ? state(health.state) : state('off', 'disabled'),
    enabled && resting,
    error && under(`${error.message} · `, utc(error.at)),
  )
}

function modelsOf({ default_model: model, allowed_models: allowed, model_mapping: mapping }) {
  const names = [...new Set([model, ...allowed, ...Object.keys(mapping)].filter(Boolean))]
  const more = names.length - 3
  return names.length === 0 ? 'any' : `${names.slice(0, 3).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

function actionsOf(credential, context) {
  const { id, name, enabled } = credential
  const { show } = context
  const toggle = async () => {
    await call('POST', `credentials/${id}/${enabled ? 'disable' : 'enable'}`)
    await show()
    tell(`${name} is ${enabled ? 'disabled; calls under way go on to their end' : 'enabled'}.`)
  }
  return el(
    'div',
    { class: 'buttons' },
    action('Test', () => test(credential, show), { of: name }),
    action('Edit', () => editCredential(credential, context), { of: name }),
    action(enabled ? 'Disable' : 'Enable', toggle, { of: name }),
    action('Delete', () => remove(credential, show), { kind: 'danger', of: name }),
  )
}

const MODES = [
  ['', 'whether it may sign in'],
  ['chat', 'a short chat'],
  ['embeddings', 'an embedding'],
]

/** Tries it; what comes of it tells in its health too. */
function test({ id, name, default_model: usual }, show) {
  openDialog({
    title: `Test ${name}`,
    fields: [
      field('Try', select('mode', MODES, '')),
      field('Model', input('model', '', { placeholder: usual ?? '' }), 'where a test needs one'),
    ],
    submit: 'Test',
    async onSubmit(form) {
      const result = await call('POST', `credentials/${id}/test`, texts(form, ['mode', 'model']))
      await show()
      return tested(result)
    },
  })
}

const namesOf = (aliases) =>
  aliases.length === 0 ? 'aliases of other users' : aliases.map(({ name }) => name).join(', ')

function remove({ id, name }, show) {
  const erase = async (more = '') => {
    await call('DELETE', `credentials/${id}${more}`)
    await show()
    tell(`${name} is deleted.`)
  }
  confirm(`Delete ${name}?`, 'Its key is erased. Calls under way go on to their end.', 'Delete', async () => {
    try {
      await erase()
    } catch (error) {
      if (error.details?.reason !== 'in_use') throw error
      const aliases = namesOf(error.details.aliases)
      confirm(`${name} is in use`, `It is a member of ${aliases}, and leaves there too.`, 'Delete all the same', () =>
        erase('?force=true'),
      )
    }
  })
}

const WHAT =
  'A credential is one way to a provider: its address, its key, and which models it serves. Keys are sealed, and nobody can read them here again.'

page(async ({ me, show }) => {
  const [credentials, { private_credentials: mayKeepPrivate }] = await Promise.all([
    listAll('credentials', 'credentials'),
    call('GET', 'settings'),
  ])
  const context = { me, mayKeepPrivate, show }
  const mayAdd = me.isAdmin ? true : mayKeepPrivate
  const add = mayAdd && action('Add a credential', () => editCredential(undefined, context), { kind: 'primary' })
  if (credentials.length === 0) return { content: [empty('No credential yet', WHAT, add)] }
  return {
    buttons: [add],
    content: [
      listing(COLUMNS, credentials, {
        name: 'Credentials',
        textOf: ({ name, provider, default_model: model = '' }) => `${name} ${provider} ${model}`,
        rowOf: (each) => rowOf(each, context),
      }),
    ],
  }
})
