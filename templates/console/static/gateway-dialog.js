// How the gateway's pages ask, act and tell.
import { area, el, field } from './gateway-elements.js'

/** What went wrong, or well, in a box. */
export const notice = (error, kind = 'bad') =>
  el('p', { class: `notice ${kind}` }, el('strong', {}, error.message ?? String(error)), hintOf(error))

function hintOf({ code, details = {} }) {
  if (details.reason === 'version')
    return el('span', {}, 'Open it anew to see what is there now; what you changed here is not saved.')
  const names = details.fields ?? details.aliases
  if (names === undefined) return undefined
  return el('span', {}, code === 'secret_required' ? `Enter again: ${names.join(', ')}` : names.join(', '))
}

const told = () => document.querySelector('#told')

/** Says at the top of the page what was done, for a while. */
export function tell(message) {
  const note = notice({ message }, 'good')
  told().replaceChildren(note)
  setTimeout(() => note.remove(), 10_000)
}

export const hush = () => told().replaceChildren()

let place = -1

/** Remembers which control has the focus; the answer gives it back, to what stands in its place now. */
export function keepPlace() {
  const controls = () => [...document.querySelectorAll('#main :is(button, a, input, select)')]
  const at = controls().indexOf(document.activeElement)
  if (at >= 0) place = at
  return () => {
    if (place < 0 || document.activeElement !== document.body) return
    const now = controls()
    now[Math.min(place, now.length - 1)]?.focus()
  }
}

/** Tells at the top of the page what the work fails with. */
export async function reporting(run) {
  try {
    await run()
  } catch (error) {
    told().replaceChildren(notice(error))
  }
}

/** A button; what its work fails with is told at the top. `of` names for listeners what it acts on. */
export function action(label, run, { kind = '', of } = {}) {
  const name = of === undefined ? undefined : `${label} ${of}`
  const button = el('button', { type: 'button', class: kind, 'aria-label': name }, label)
  button.addEventListener('click', async () => {
    const back = keepPlace()
    button.disabled = true
    hush()
    await reporting(run)
    button.disabled = false
    back()
  })
  return button
}

/**
 * A dialog with a form; it stays open while `onSubmit` throws, and tells why, or while it answers with something to show.
 * One that `isModal` ends by its button alone.
 */
export function openDialog({ title, fields, submit, isDanger = false, isModal = false, isWide = false, onSubmit }) {
  const back = keepPlace()
  const answer = el('div', { class: 'answer', role: 'alert' })
  const button = el('button', { class: isDanger ? 'danger solid' : 'primary' }, submit)
  const buttons = el('div', { class: 'buttons' }, button)
  const form = el('form', {}, el('h2', {}, title), fields, answer, buttons)
  const dialog = el('dialog', { class: isWide ? 'dialog wide' : 'dialog', 'aria-label': title }, form)
  let isDone = false
  if (isModal) dialog.addEventListener('cancel', (event) => event.preventDefault())
  else if (onSubmit) buttons.append(el('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'))
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    button.disabled = true
    answer.replaceChildren()
    try {
      const shown = await onSubmit?.(new FormData(form))
      if (shown) answer.replaceChildren(shown)
      else {
        isDone = true
        dialog.close()
      }
    } catch (error) {
      if (error.details?.reason === 'version') document.dispatchEvent(new Event('page:stale'))
      answer.replaceChildren(notice(error))
      point(form, error)
    }
    button.disabled = false
  })
  form.addEventListener('input', ({ target }) => target.removeAttribute('aria-invalid'))
  // A field that is folded away cannot say what is wrong with it.
  form.addEventListener('invalid', ({ target }) => target.closest('details')?.setAttribute('open', ''), true)
  dialog.addEventListener('close', () => {
    // Browsers let nobody be kept in: the second Escape closes in spite of what the page says.
    if (isModal && !isDone) return dialog.showModal()
    dialog.remove()
    back()
  })
  document.body.append(dialog)
  dialog.showModal()
  return { dialog, form, answer, buttons }
}

/** Leads to the field that a refusal names. */
export function point(form, { details = {} }) {
  if (details.field === undefined) return
  const parts = details.field.split('.')
  const index = Number(parts.find((part) => /^\d+$/.test(part)) ?? 0)
  for (const name of [details.field, ...parts.toReversed()]) {
    const named = [...form.elements].filter((each) => each.name === name)
    const faulty = named[index] ?? named[0]
    if (faulty === undefined) continue
    faulty.closest('details')?.setAttribute('open', '')
    faulty.setAttribute('aria-invalid', 'true')
    faulty.focus()
    return
  }
}

/** Asks before something is lost. */
export const confirm = (title, text, submit, onSubmit) =>
  openDialog({ title, fields: [el('p', {}, text)], submit, isDanger: true, onSubmit })

/** The only time that a token is seen. */
export function showToken(title, token) {
  const shown = area('token', token, 2)
  shown.readOnly = true
  shown.addEventListener('focus', () => shown.select())
  const copy = el('button', { type: 'button' }, 'Copy')
  copy.addEventListener('click', async () => {
    const isCopied = await navigator.clipboard.writeText(token).then(
      () => true,
      () => false,
    )
    if (!isCopied) shown.focus()
    copy.textContent = isCopied ? 'Copied' : 'Copy it from the field'
  })
  const { buttons } = openDialog({
    title,
    fields: [el('p', {}, 'It is not kept: nobody can show it again.'), field('Token', shown)],
    submit: 'I have it',
    isModal: true,
  })
  if (navigator.clipboard) buttons.prepend(copy)
  shown.focus()
}
