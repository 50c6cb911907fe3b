// The token for a scraper of `/metrics/ai-gateway`.
import { action, confirm, showToken, tell } from './gateway-dialog.js'
import { el, facts, time } from './gateway-elements.js'
import { call } from './gateway-session.js'

export function metricsToken({ exists, last4, created_at: created, last_used_at: used }, show) {
  const make = async () => {
    const { token } = await call('POST', 'metrics-token')
    await show()
    showToken('The metrics token', token)
  }
  const replace = () => confirm('Make a new token?', 'The old one ends at once.', 'Make a new one', make)
  const revoke = () =>
    confirm('Revoke the token?', 'Scrapers that use it are refused from now on.', 'Revoke', async () => {
      await call('DELETE', 'metrics-token')
      await show()
      tell('The metrics token is revoked.')
    })
  const what = exists
    ? facts([
        ['Ends in', el('code', {}, last4)],
        ['Made', time(created)],
        ['Last used', used ? time(used) : 'never'],
      ])
    : el(
        'p',
        { class: 'muted' },
        'There is none. Prometheus needs one to scrape ',
        el('code', {}, '/metrics/ai-gateway'),
        '.',
      )
  return el(
    'section',
    { class: 'panel', 'aria-labelledby': 'metrics-h' },
    el('h2', { id: 'metrics-h' }, 'Metrics token'),
    what,
    el(
      'div',
      { class: 'buttons' },
      exists ? action('Make a new one', replace) : action('Make one', make),
      exists && action('Revoke', revoke, { kind: 'danger' }),
    ),
  )
}
