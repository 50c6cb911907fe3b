// A page of the gateway: who is there, what they see, and seeing it again.
import { action, keepPlace, notice } from './gateway-dialog.js'
import { whoAmI } from './gateway-session.js'

const main = document.querySelector('#gateway')
const buttonsOfPage = document.querySelector('#actions')

/** Shows the page, and again whenever `show` is called; what goes wrong is told in its place, until the server is back. */
export function page(build) {
  let isShown = false
  const show = async () => {
    const back = keepPlace()
    main.setAttribute('aria-busy', 'true')
    try {
      const { content, buttons = [] } = await build({ me: await whoAmI(), show })
      main.replaceChildren(...content.filter(Boolean))
      buttonsOfPage.replaceChildren(...buttons.filter(Boolean))
      isShown = true
    } catch (error) {
      main.replaceChildren(notice(error), action('Try again', show))
      isShown = false
    }
    main.setAttribute('aria-busy', 'false')
    back()
  }
  document.addEventListener('server:back', () => {
    if (!isShown) show()
  })
  return show()
}
