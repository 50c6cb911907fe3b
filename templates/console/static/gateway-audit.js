// The page of the audit.
import { action, notice, tell } from './gateway-dialog.js'
import { chip, el, empty, facts, field, input, select, table, time, under, words } from './gateway-elements.js'
import { chosen, keepChosen, page } from './gateway.js'
import { call, exportLink, peopleOf, query } from './gateway-session.js'

const ACTIONS = {
  credential: ['create', 'update', 'delete', 'enable', 'disable', 'test', 'rejected', 'cooling'],
  alias: ['create', 'update', 'delete'],
  key: ['create', 'update', 'rotate', 'delete'],
  settings: ['update'],
  cost: ['enable', 'disable'],
  metrics_token: ['create', 'revoke'],
  content: ['read'],
  fallback: ['used'],
  provider: ['error'],
  budget: ['exceeded'],
}
const NAMES = Object.entries(ACTIONS).flatMap(([of, verbs]) => verbs.map((verb) => `${of}.${verb}`))
const TARGETS = ['credential', 'alias', 'key', 'settings', 'metrics_token', 'usage', 'user', 'organization']
const COLUMNS = [['Time, UTC'], ['Action'], ['Target', 'mid'], ['Who'], ['What changed', 'wide'], ['#', 'num']]

const asked = chosen({ action: '', actor_id: '', target_type: '', target_id: '', from: '', to: '' })
let pages = []
/** Who may be chosen in the filters; undefined for whom the audit is not. */
let people

const rowOf = ({ at, action: name, target, actor, changes, count, seq, ip, request_id: request }) => [
  time(at, 19),
  el('span', {}, name, count > 1 && chip(`${count} times`)),
  el('span', {}, target?.name ?? target?.id ?? '–', target && under(words(target.type))),
  el('span', { title: request && `request ${request}` }, nameOf(actor), ip && under(ip)),
  changes ? changesOf(changes) : '',
  String(seq),
]

function nameOf({ type, id }) {
  if (type === 'system') return 'the gateway'
  return type === 'user' && people.has(id) ? people.get(id) : `${type} ${id}`
}

/** What was empty and is empty still tells nobody anything. */
function changesOf(changes) {
  const entries = Object.entries(changes).filter((entry) => entry[1].some((value) => !isEmpty(value)))
  const list = facts(
    entries.map(([key, [before, after]]) => [
      key,
      el('code', {}, isEmpty(before) ? shown(after) : `${shown(before)} → ${shown(after)}`),
    ]),
    'facts changes',
  )
  if (entries.length <= 3) return list
  return el('details', {}, el('summary', {}, `${entries.length} fields`), list)
}

const isEmpty = (value) => [undefined, 'null', '""', '[]', '{}'].includes(JSON.stringify(value))

const shown = (value) => (isEmpty(value) ? 'none' : typeof value === 'string' ? value : JSON.stringify(value))

/** Fields of local time that mean UTC. */
const instant = (name, label) => field(label, input(name, asked[name]?.slice(0, 16), { type: 'datetime-local' }))

const utc = (text) => (text === '' ? '' : `${text}:00Z`)

function filters(show) {
  const any = (names) => [['', 'any'], ...names.map((name) => [name, words(name)])]
  const form = el(
    'form',
    { class: 'filters panel' },
    field('Action', select('action', [['', 'any'], ...NAMES.map((name) => [name])], asked.action)),
    field('Who', select('actor_id', [['', 'anybody'], ...people], asked.actor_id)),
    field('Kind of target', select('target_type', any(TARGETS), asked.target_type)),
    field('Id of target', input('target_id', asked.target_id)),
    instant('from', 'From, UTC'),
    instant('to', 'To, UTC'),
    el('div', { class: 'buttons' }, el('button', { class: 'primary' }, 'Filter')),
  )
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    const { from, to } = form.elements
    Object.assign(asked, Object.fromEntries(new FormData(form)), { from: utc(from.value), to: utc(to.value) })
    pages = []
    keepChosen(asked)
    void show()
  })
  return form
}

async function verify() {
  const { ok, records, first_bad_seq: at, reason } = await call('GET', 'audit/verify')
  if (!ok) throw new Error(`The chain is broken at record ${at}: ${reason}.`)
  tell(`The chain is whole: ${records} records.`)
}

/** They stay where the server refuses what the address asks for, so that it can be asked for otherwise. */
const controls = (show) => [people && filters(show)]

page(async ({ me, show }) => {
  people = me.isAdmin ? await peopleOf(me) : undefined
  if (!me.isAdmin) return { content: [notice({ message: 'The audit is for admins of the organization.' }, 'warn')] }
  const { audit, next_after_id: next } = await call(
    'GET',
    query('audit', { ...asked, order: 'desc', after_id: pages.at(-1), limit: 50 }),
  )
  const newer = async () => {
    pages.pop()
    await show()
  }
  const older = async () => {
    pages.push(next)
    await show()
  }
  return {
    buttons: [action('Verify the chain', verify), exportLink('Export JSONL', query('audit/export', asked))],
    content: [
      audit.length === 0
        ? empty('Nothing here', 'Each act of management leaves a record, chained by hashes.')
        : table(COLUMNS, audit.map(rowOf), 'Audit'),
      el('div', { class: 'pager' }, pages.length > 0 && action('Newer', newer), next !== '' && action('Older', older)),
    ],
  }
}, controls)
