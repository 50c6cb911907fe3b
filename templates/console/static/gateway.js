// A page of the gateway: who is there, what they see, and seeing it again.
import { action, keepPlace, notice } from './gateway-dialog.js'
import { query, whoAmI } from './gateway-session.js'

const main = document.querySelector('#gateway')
const buttonsOfPage = document.querySelector('#actions')

/**
 * Shows the page, and again whenever `show` is called; what goes wrong is told in its place, until the server is back.
 * `controls` stand above it then too: whoever asked for too much can ask for less.
 */
export function page(build, controls = () => []) {
  let isShown = false
  let asked = 0
  const show = async () => {
    const turn = ++asked
    const back = keepPlace()
    main.setAttribute('aria-busy', 'true')
    const { isGood, content, buttons } = await built()
    await written()
    // What was asked for first may come last.
    if (turn !== asked) return
    const { name } = document.activeElement
    main.replaceChildren(...[...controls(show), ...content].filter(Boolean))
    // Who has just gone to a field goes on in its successor.
    if (name) main.querySelector(`[name="${CSS.escape(name)}"]`)?.focus()
    buttonsOfPage.replaceChildren(...buttons.filter(Boolean))
    isShown = isGood
    main.setAttribute('aria-busy', 'false')
    back()
  }
  const built = async () => {
    try {
      const { content, buttons = [] } = await build({ me: await whoAmI(), show })
      return { isGood: true, content, buttons }
    } catch (error) {
      return { isGood: false, content: [notice(error), action('Try again', show)], buttons: [] }
    }
  }
  document.addEventListener('page:stale', show)
  document.addEventListener('server:back', () => {
    if (!isShown) show()
  })
  return show()
}

/** The field that somebody writes into, until they are done with it. */
let writing
main.addEventListener('input', ({ target }) => (writing = target))
for (const end of ['change', 'focusout']) main.addEventListener(end, () => (writing = undefined))

/** Waits for that end: a page that is made anew would take what was written. */
async function written() {
  if (!writing) return
  await new Promise((resolve) => {
    for (const end of ['change', 'focusout']) main.addEventListener(end, resolve, { once: true })
  })
}

/** What the address of the page chooses, of `usual`: names, and what they are without it. */
export function chosen(usual) {
  const given = new URLSearchParams(location.search)
  return Object.fromEntries(Object.entries(usual).map(([name, value]) => [name, given.get(name) ?? value]))
}

/** Keeps choices in the address: for a reload, a bookmark, the way back. */
export const keepChosen = (asked) => history.replaceState(null, '', query(location.pathname, asked))
