// While the server does not answer, the page says so; when it is back, the page goes on by itself.

const PROBE_MS = 2000
const PATIENCE_MS = 5000
const note = document.querySelector('#away p')

function tell() {
  if (!note.hidden) return
  note.hidden = false
  setTimeout(probe, PROBE_MS)
}

async function probe() {
  const request = { cache: 'no-store', signal: AbortSignal.timeout(PATIENCE_MS) }
  const isBack = await fetch('/ui/static/icon.svg', request).then(
    ({ ok }) => ok,
    () => false,
  )
  if (!isBack) return setTimeout(probe, PROBE_MS)
  note.hidden = true
  document.dispatchEvent(new Event('server:back'))
}

// With a status there was an answer, which the page shows in its place.
document.addEventListener('htmx:error', ({ detail: { ctx } }) => {
  if (ctx && ctx.response === undefined) tell()
})
document.addEventListener('htmx:sse:error', ({ detail: { status } }) => {
  if (status === undefined) tell()
})
document.addEventListener('server:away', tell)
