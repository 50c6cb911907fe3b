// What the pages do beyond htmx: copying, the theme, and bulk runs with their progress.

for (const button of document.querySelectorAll('[data-copy]')) {
  button.hidden = !navigator.clipboard
}

document.addEventListener('click', async (event) => {
  const copy = event.target.closest('[data-copy]')
  if (copy) {
    await navigator.clipboard.writeText(copy.dataset.copy)
    copy.classList.add('done')
    setTimeout(() => copy.classList.remove('done'), 1200)
  }
  if (event.target.closest('[data-theme-toggle]')) toggleTheme()
})

const root = document.documentElement
const isDark = () =>
  (root.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark'

function toggleTheme() {
  root.dataset.theme = isDark() ? 'light' : 'dark'
  localStorage.setItem('mem-theme', root.dataset.theme)
}

for (const button of document.querySelectorAll('[data-theme-toggle]')) button.hidden = false

// On a small screen the menu and the tabs are each one line that is scrolled.
for (const current of document.querySelectorAll('nav [aria-current]'))
  current.scrollIntoView({ block: 'nearest', inline: 'center' })

// `/` goes to the search field of the page, as in many tools.
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.closest('input, textarea, select') || event.ctrlKey || event.metaKey) return
  const field = document.querySelector('input[type=search]')
  if (!field) return
  event.preventDefault()
  field.focus()
  field.select()
})

// An address may point at an operation of the API, which is folded.
function unfold() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)))
  if (target instanceof HTMLDetailsElement) target.open = true
}
unfold()
addEventListener('hashchange', unfold)

// Whoever signed in again, in another tab, has forms with the token of before: the refusal brings the one of now.
function renewToken(headers) {
  const token = headers.get('X-CSRF-Token')
  if (token) for (const field of document.getElementsByName('csrf_token')) field.value = token
}
document.addEventListener('htmx:after:request', ({ detail: { ctx } }) => renewToken(ctx.response.headers))

// The home page follows what happens for as long as it is open.
const FOLLOWED = 200
const activity = document.getElementById('activity')
if (activity)
  new MutationObserver(() => {
    while (activity.childElementCount > FOLLOWED) activity.lastElementChild.remove()
  }).observe(activity, { childList: true })

for (const form of document.querySelectorAll('form[data-bulk]')) {
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    run(form)
  })
}

/** The server takes 8 MiB at once; larger dumps go in pieces of whole lines. What is replayed has to stay together. */
const PIECE_BYTES = 7 * 1024 * 1024
const bytes = new TextEncoder()

async function run(form) {
  const view = viewOf(form)
  const ending = new AbortController()
  view.start(() => ending.abort())
  const sum = { done: 0, succeeded: 0, failed: 0, skipped: 0 }
  try {
    for (const body of await bodiesOf(form)) {
      const before = { ...sum }
      const isOver = await follow(
        form,
        body,
        ending.signal,
        (message) => {
          if (message.type === 'progress') {
            sum.done = before.done + message.done
            sum.failed = before.failed + message.failed
            view.progress(message, sum)
          } else if (message.type === 'complete') {
            for (const name of ['succeeded', 'failed', 'skipped']) sum[name] = before[name] + message[name]
          }
        },
        view,
      )
      if (isOver) return
    }
    view.end(`Done: ${sum.succeeded} succeeded, ${sum.skipped} skipped, ${sum.failed} failed.`)
  } catch (error) {
    if (ending.signal.aborted) return view.end(`Cancelled after ${sum.done}. What was done stays.`)
    view.end(`The connection broke after ${sum.done}: ${error.message}. What was done stays.`)
    document.dispatchEvent(new Event('server:away'))
  }
}

/** Sends one piece and tells each message; true when the run must not go on. */
async function follow(form, body, signal, tell, view) {
  const response = await fetch(form.action, { method: 'POST', body, signal })
  if (!response.ok) {
    renewToken(response.headers)
    view.refuse(await response.text())
    return true
  }
  let rest = ''
  let last = ''
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    const events = (rest + value).split('\n\n')
    rest = events.pop()
    for (const event of events) {
      const message = JSON.parse(event.replace(/^data: /, ''))
      last = message.type
      if (last === 'error') view.end(message.message)
      else tell(message)
    }
  }
  if (last === 'progress') throw new Error('the server ended it early')
  return last === 'error'
}

async function bodiesOf(form) {
  const whole = new FormData(form)
  const file = whole.get('file')
  if (!(file instanceof File) || file.size <= PIECE_BYTES || !('pieces' in form.dataset)) return [whole]
  const text = await file.text()
  if (text.trimStart().startsWith('[')) return [whole]
  const pieces = []
  let lines = []
  let size = 0
  for (const line of text.split('\n')) {
    const added = bytes.encode(line).length + 1
    if (size + added > PIECE_BYTES && lines.length > 0) {
      pieces.push(lines.join('\n'))
      lines = []
      size = 0
    }
    lines.push(line)
    size += added
  }
  pieces.push(lines.join('\n'))
  return pieces
    .filter((piece) => piece.trim() !== '')
    .map((piece) => {
      const body = new FormData(form)
      body.set('file', new File([piece], file.name))
      return body
    })
}

function viewOf(form) {
  const part = (name) => form.querySelector(`[data-${name}]`)
  const [box, status, problems, cancel] = ['run', 'status', 'problems', 'cancel'].map(part)
  const bar = box.querySelector('progress')
  const answer = form.querySelector('.answer')
  const submit = form.querySelector('button[type=submit]')
  const finish = () => {
    submit.disabled = false
    cancel.hidden = true
  }
  return {
    start(onCancel) {
      answer.replaceChildren()
      problems.replaceChildren()
      problems.hidden = true
      box.hidden = false
      bar.removeAttribute('value')
      status.textContent = 'Starting …'
      submit.disabled = true
      cancel.hidden = false
      cancel.onclick = onCancel
    },
    progress({ done, total, error }, sum) {
      bar.max = total
      bar.value = done
      status.textContent = `${sum.done} done${sum.failed > 0 ? `, ${sum.failed} failed` : ''}`
      if (error && problems.childElementCount < 20) {
        problems.hidden = false
        const item = document.createElement('li')
        item.textContent = `Record ${sum.done}: ${error}`
        problems.append(item)
      }
    },
    end(text) {
      status.textContent = text
      finish()
    },
    refuse(html) {
      box.hidden = true
      answer.innerHTML = html
      finish()
    },
  }
}
