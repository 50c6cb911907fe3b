// The playground: one prompt for one model, or for two side by side.
import { notice } from './gateway-dialog.js'
import { area, el, empty, facts, field, input, ms, words } from './gateway-elements.js'
import { namesList } from './gateway-explainer.js'
import { costOf } from './gateway-request.js'
import { page } from './gateway.js'
import { call, query } from './gateway-session.js'
import { ask, readChat } from './gateway-stream.js'

/** One model's answer as it comes, with its times and what it cost. */
function paneOf(label, model, hint) {
  // Enter in any of the fields of a line runs it.
  const name = input('model', model, { list: 'names', autocomplete: 'off', form: 'prompt-form' })
  const said = el('div', {
    class: 'said',
    'aria-label': `Answer of ${label.toLowerCase()}`,
    role: 'log',
    tabindex: '0',
    dir: 'auto',
  })
  /** What came since it was last shown: once a frame, since a long answer comes in thousands of pieces. */
  let pieces = []
  /** Whether it reasons, answers or calls. */
  let saying
  const say = (text, kind = 'answer') => {
    const last = pieces.at(-1)
    if (last?.kind === kind) last.text += text
    else {
      const gap = saying === undefined || saying === kind ? '' : '\n\n'
      if (pieces.push({ text: gap + text, kind }) === 1) requestAnimationFrame(showSaid)
    }
    saying = kind
  }
  const showSaid = () => {
    // Whoever reads the end goes on reading it.
    const isAtEnd = said.scrollHeight - said.scrollTop - said.clientHeight < 24
    said.append(...pieces.map(({ text, kind }) => (kind === 'answer' ? text : el('span', { class: kind }, text))))
    pieces = []
    if (isAtEnd) said.scrollTop = said.scrollHeight
  }
  const told = el('div')
  let ending = new AbortController()

  const clear = () => {
    pieces = []
    saying = undefined
    said.replaceChildren()
    told.replaceChildren()
  }

  async function run(messages) {
    ending = new AbortController()
    const { signal } = ending
    const known = {}
    const tell = (more) => told.replaceChildren(facts(Object.entries(Object.assign(known, more)), 'facts row'))
    const begin = performance.now()
    const since = () => ms(performance.now() - begin)
    clear()
    tell({ state: 'waiting …' })
    let requestId
    try {
      const response = await ask(name.value.trim(), messages, signal)
      requestId = response.headers.get('x-request-id')
      const [by, upstream] = ['x-mem-credential', 'x-mem-model'].map((header) => response.headers.get(header))
      tell({ state: 'answering …', 'served by': `${by} · ${upstream}` })
      await readChat(response, ({ content, reasoning, calls, usage, finish }) => {
        if ((content || reasoning || calls) && !known['first token']) tell({ 'first token': since() })
        if (reasoning) say(reasoning, 'muted')
        if (content) say(content)
        if (calls) say(calls, 'call')
        if (usage) tell({ tokens: `${usage.prompt_tokens} in, ${usage.completion_tokens} out` })
        if (finish && finish !== 'stop') tell({ 'ended by': words(finish) })
      })
      if (!known['first token']) say('The answer is empty.', 'muted')
      tell({ state: 'done', total: since() })
    } catch (error) {
      tell({ state: signal.aborted ? 'stopped' : 'failed', total: since() })
      showSaid()
      if (!signal.aborted) said.append(notice(error))
    }
    if (!requestId) return
    const later = (cost) => signal === ending.signal && tell({ cost })
    recordedCost(requestId).then(later, (error) => later(error.message))
  }

  return {
    element: el(
      'section',
      { class: 'panel', 'aria-label': `${label}: its answer` },
      field(label, name, hint),
      said,
      told,
    ),
    isAsked: () => name.value.trim() !== '',
    name,
    stop: () => ending.abort(),
    /** Beside another answer, one to the prompt before would be taken for one to this. */
    clear() {
      ending = new AbortController()
      clear()
    },
    run,
  }
}

/** Streams carry no cost: the record of the request tells it, a moment later. */
async function recordedCost(requestId) {
  for (let attempt = 0; attempt < 15; attempt++) {
    const { usage } = await call('GET', query('usage', { request_id: requestId }))
    const [record] = usage
    if (record) return costOf(record)
    await new Promise((done) => setTimeout(done, 200))
  }
  return 'not recorded yet'
}

function promptForm(panes) {
  const system = area('system')
  const prompt = area('prompt', '', 5)
  prompt.required = true
  const run = el('button', { class: 'primary' }, 'Run')
  const stop = el(
    'button',
    { type: 'button', disabled: true, onclick: () => panes.forEach((pane) => pane.stop()) },
    'Stop',
  )
  const form = el(
    'form',
    { class: 'panel' },
    field('System', system, 'may stay empty'),
    field('Prompt', prompt, 'Ctrl and Enter runs it'),
    el('div', { class: 'buttons' }, run, stop),
  )
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    if (run.disabled) return
    const asked = panes.filter((pane) => pane.isAsked())
    for (const pane of panes) if (!pane.isAsked()) pane.clear()
    const hadFocus = document.activeElement === run
    run.disabled = true
    stop.disabled = false
    if (hadFocus) stop.focus()
    const system_ = system.value.trim() === '' ? [] : [{ role: 'system', content: system.value }]
    await Promise.all(asked.map((pane) => pane.run([...system_, { role: 'user', content: prompt.value }])))
    const isAtStop = document.activeElement === stop
    run.disabled = false
    stop.disabled = true
    if (isAtStop) run.focus()
  })
  prompt.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) form.requestSubmit()
  })
  return form
}

const FIRST = el('a', { href: '/ui/gateway/credentials' }, 'To the credentials')

page(async () => {
  const { data: models } = await call('GET', 'v1/models')
  if (models.length === 0) {
    return {
      content: [empty('No model to ask yet', 'A credential or an alias makes names that can be asked for.', FIRST)],
    }
  }
  const panes = [
    paneOf('Model', (models.find(({ owned_by: owner }) => owner === 'alias') ?? models[0]).id),
    paneOf('Second model', '', 'to compare with; may stay empty'),
  ]
  panes[0].name.required = true
  const form = promptForm(panes)
  form.id = 'prompt-form'
  const shown = panes.map(({ element }) => element)
  return { content: [form, namesList(models), el('div', { class: 'panes' }, shown)] }
})
