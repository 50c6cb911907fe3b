// The form of a credential, new or known.
import { action, notice, openDialog, point, tell } from './gateway-dialog.js'
import {
  area,
  check,
  el,
  field,
  input,
  lines,
  numbers,
  numeric,
  pair,
  select,
  state,
  texts,
} from './gateway-elements.js'
import { configOf, KINDS, kindFields } from './gateway-kinds.js'
import { call } from './gateway-session.js'

const TIMEOUTS = [
  ['connect_ms', 'To connect', 5000],
  ['first_byte_ms', 'To the first byte', 60_000],
  ['idle_ms', 'Between bytes', 60_000],
  ['total_ms', 'In all', 600_000],
]
const LIMITS = ['requests_per_minute', 'tokens_per_minute', 'max_concurrency']

/** What came of a test, in words. */
export const tested = ({ ok, latency_ms: ms, models, model, error }) =>
  ok
    ? state('ok', `works, ${Math.round(ms)} ms${models ? `, ${models.length} models` : ''}${model ? `, ${model}` : ''}`)
    : state('error', error?.message ?? 'failed')

/** Opens the form. `mayKeepPrivate`: the organization lets its users bring their own. */
export function editCredential(credential, { me, mayKeepPrivate, show }) {
  const kinds = Object.keys(KINDS).map((name) => [name])
  const kind = select('provider', kinds, credential?.provider, { disabled: credential !== undefined })
  const base = input('base_url', credential?.base_url, { type: 'url' })
  const special = el('div')
  const showKind = () => {
    const { base: usual, needsBase = false, note } = KINDS[kind.value]
    base.placeholder = usual ?? ''
    base.required = needsBase
    special.replaceChildren(
      ...(note ? [el('p', { class: 'muted' }, note)] : []),
      ...kindFields(kind.value, credential, me.isAdmin),
    )
  }
  kind.addEventListener('change', showKind)
  showKind()
  const scope = credential?.scope ?? (me.isAdmin ? 'organization' : 'user')
  const scopeField =
    credential === undefined && me.isAdmin && mayKeepPrivate
      ? check('private', false, 'Private: only I see and use it')
      : el(
          'p',
          { class: 'muted small' },
          scope === 'user' ? 'Private: only you see and use it.' : 'Shared by the organization.',
        )
  const bodyOf = (form) => {
    const isPrivate = scope === 'user' || form.has('private')
    return { ...requestOf(form, kind.value, credential), scope: isPrivate ? 'user' : 'organization' }
  }
  const { form, answer, buttons } = openDialog({
    title: credential ? `Edit ${credential.name}` : 'Add a credential',
    isWide: true,
    submit: credential ? 'Save' : 'Add',
    fields: [
      pair(field('Provider', kind), field('Name', input('name', credential?.name, { required: true, maxlength: 100 }))),
      special,
      pair(
        field('Default model', input('default_model', credential?.default_model), 'preferred for it'),
        field('Base URL', base),
      ),
      pair(
        field(
          'Weight',
          numeric('weight', credential?.weight ?? 1, { min: 0, max: 1000, step: 0.001 }),
          'its share; 0 only steps in',
        ),
        field('Priority', numeric('priority', credential?.priority ?? 0, { min: 0, max: 100 }), 'lower goes first'),
      ),
      el('details', {}, el('summary', {}, 'Models and headers'), modelFields(credential)),
      el('details', {}, el('summary', {}, 'Limits and time limits'), limitFields(credential)),
      scopeField,
    ],
    async onSubmit(values) {
      const body = bodyOf(values)
      await (credential ? call('PUT', `credentials/${credential.id}`, body) : call('POST', 'credentials', body))
      await show()
      tell(`${body.name} is ${credential ? 'saved' : 'added'}.`)
    },
  })
  if (credential) return
  const test = async () => {
    if (!form.reportValidity()) return
    answer.replaceChildren('Testing …')
    try {
      answer.replaceChildren(tested(await call('POST', 'credentials/test', bodyOf(new FormData(form)))))
    } catch (error) {
      answer.replaceChildren(notice(error))
      point(form, error)
    }
  }
  buttons.firstChild.after(action('Test', test))
}

function modelFields(credential) {
  const mapping = Object.entries(credential?.model_mapping ?? {}).map(([from, to]) => `${from} = ${to}`)
  const headers = Object.entries(credential?.custom_headers ?? {}).map(([name, value]) => `${name}: ${value}`)
  return [
    field(
      'Only these models',
      area('allowed_models', credential?.allowed_models.join('\n')),
      'one a line; * at the end stands for any rest',
    ),
    field('Other names upstream', area('model_mapping', mapping.join('\n')), 'name of clients = name of the provider'),
    field('Headers', area('custom_headers', headers.join('\n')), 'name: value; *** keeps the saved value'),
    field('Fallback group', input('fallback_group', credential?.fallback_group), 'replaced by members of it only'),
  ]
}

function limitFields(credential) {
  const { limits = {}, timeouts = {} } = credential ?? {}
  const limit = (name, label) => field(label, numeric(name, limits[name], { placeholder: 'no limit' }))
  const [connect, first, idle, total] = TIMEOUTS.map(([name, label, usual]) =>
    field(label, numeric(name, timeouts[name], { min: 100, max: 3_600_000, placeholder: String(usual) }), 'ms'),
  )
  return [
    pair(limit('requests_per_minute', 'Requests a minute'), limit('tokens_per_minute', 'Tokens a minute')),
    pair(limit('max_concurrency', 'Calls at once'), connect),
    pair(first, idle),
    pair(total),
  ]
}

const requestOf = (form, kind, credential) => ({
  ...(credential && { version: credential.version, enabled: credential.enabled }),
  provider: kind,
  name: form.get('name').trim(),
  ...texts(form, ['api_key', 'default_model', 'base_url', 'fallback_group']),
  ...numbers(form, ['weight', 'priority']),
  config: configOf(kind, form),
  allowed_models: lines(form.get('allowed_models')),
  model_mapping: pairsOf(form.get('model_mapping'), '='),
  custom_headers: pairsOf(form.get('custom_headers'), ':'),
  limits: numbers(form, LIMITS),
  timeouts: numbers(
    form,
    TIMEOUTS.map(([name]) => name),
  ),
})

const pairsOf = (text, mark) =>
  Object.fromEntries(
    text
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean)
      .map((line) => {
        const at = line.indexOf(mark)
        if (at < 1) throw new Error(`“${line}” has no ${mark} between two words`)
        return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
      }),
  )
