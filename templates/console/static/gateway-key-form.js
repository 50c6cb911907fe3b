// The form of a virtual key, new or known.
import { openDialog, showToken, tell } from './gateway-dialog.js'
import {
  area,
  check,
  choices,
  el,
  field,
  input,
  lines,
  numbers,
  numeric,
  pair,
  select,
  texts,
} from './gateway-elements.js'
import { call, change } from './gateway-session.js'

const WINDOWS = [['day'], ['week'], ['month'], ['total', 'all time']]
const LIMITS = ['requests_per_minute', 'tokens_per_minute', 'max_concurrency']

/** What an update says again of what it leaves. */
export const keptOf = ({
  name,
  allowed_models,
  allowed_credentials,
  budget,
  limits,
  max_output_tokens,
  expires_at,
  enabled,
}) => ({
  name,
  allowed_models,
  allowed_credentials,
  budget,
  limits,
  max_output_tokens,
  expires_at,
  enabled,
})

export function editKey(key, { me, people, credentials, show }) {
  const { limits = {}, budget, allowed_credentials: allowed = [] } = key ?? {}
  const limit = (name, label) => field(label, numeric(name, limits[name], { placeholder: 'no limit' }))
  openDialog({
    title: key ? `Edit ${key.name}` : 'Add a key',
    isWide: true,
    submit: key ? 'Save' : 'Add',
    fields: [
      pair(
        field('Name', input('name', key?.name, { required: true, maxlength: 128 })),
        key === undefined && me.isAdmin
          ? field(
              'For',
              select('user_id', [['', 'the organization'], ...people], ''),
              'a user’s key ends with the user',
            )
          : '',
      ),
      field(
        'Only these models',
        area('allowed_models', key?.allowed_models.join('\n')),
        'one a line, * at the end for any rest; empty: any',
      ),
      credentials.length > 0
        ? el(
            'details',
            { open: allowed.length > 0 },
            el('summary', {}, 'Only some credentials'),
            choices(
              'None chosen: any',
              credentials.map(({ id, name }) => check('allowed_credentials', allowed.includes(id), name, id)),
            ),
          )
        : '',
      pair(
        field('Budget, USD', input('limit_usd', budget?.limit_usd, { inputmode: 'decimal', placeholder: 'none' })),
        field('In each', select('window', WINDOWS, budget?.window ?? 'month')),
      ),
      check(
        'unknown_price',
        budget?.unknown_price === 'allow',
        'With a budget: allow models of unknown price, which do not count',
      ),
      pair(limit('requests_per_minute', 'Requests a minute'), limit('tokens_per_minute', 'Tokens a minute')),
      pair(
        limit('max_concurrency', 'Calls at once'),
        field('Output cap', numeric('max_output_tokens', key?.max_output_tokens, { placeholder: 'none' }), 'tokens'),
      ),
      field(
        'Ends at',
        input('expires_at', key?.expires_at?.slice(0, 16), { type: 'datetime-local' }),
        'UTC; empty: never',
      ),
    ],
    async onSubmit(form) {
      const body = requestOf(form, key)
      const { token } = await (key ? change(`keys/${key.id}`, key, body) : call('POST', 'keys', body))
      await show()
      tell(`${body.name} is ${key ? 'saved' : 'added'}.`)
      if (token) showToken(`The key ${body.name}`, token)
    },
  })
}

function requestOf(form, key) {
  const end = form.get('expires_at')
  const isKept = key?.expires_at !== undefined && end === key.expires_at.slice(0, 16)
  return {
    name: form.get('name').trim(),
    ...numbers(form, ['user_id', 'max_output_tokens']),
    allowed_models: lines(form.get('allowed_models')),
    allowed_credentials: form.getAll('allowed_credentials').map(Number),
    ...(form.get('limit_usd') && {
      budget: {
        ...texts(form, ['limit_usd', 'window']),
        unknown_price: form.has('unknown_price') ? 'allow' : 'deny',
      },
    }),
    limits: numbers(form, LIMITS),
    ...(end && { expires_at: isKept ? key.expires_at : `${end}:00Z` }),
    enabled: key?.enabled ?? true,
  }
}
