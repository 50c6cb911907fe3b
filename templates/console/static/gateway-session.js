// Calls with the session cookie; whoever has no session signs in, and the work goes on.
import { openDialog, reporting } from './gateway-dialog.js'
import { el, field, input } from './gateway-elements.js'

const BASE = '/rest/v1/llm-gateway/'
const PLATFORM = '/rest/v1/platform/'

/** A refusal of the server, in its own words. */
class Refusal extends Error {
  constructor(status, { code = '', message = `the server answered ${status}`, details = {} } = {}) {
    super(message)
    this.status = status
    this.code = code
    this.details = details
  }
}

/** A response that is good; asks for a sign-in where one is needed. */
export async function send(method, url, body, signal) {
  for (;;) {
    const response = await request(method, url, body, signal)
    if (response.ok) return response
    if (response.status !== 401) throw await refusalOf(response)
    await signIn()
  }
}

/** An error for whom no answer came, or half of one; the page says so until the server answers. */
export function lost(message, cause) {
  document.dispatchEvent(new Event('server:away'))
  return new Error(message, { cause })
}

async function request(method, url, body, signal) {
  const json = body === undefined ? {} : { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }
  try {
    return await fetch(url, { method, signal, ...json })
  } catch (error) {
    if (signal?.aborted) throw error
    throw lost('the server cannot be reached; try again when it is back', error)
  }
}

const refusalOf = async (response) =>
  new Refusal(response.status, (await response.json().catch(() => undefined))?.error)

/** The answer of a route below the gateway. */
export const call = async (method, path, body) => answerOf(await send(method, BASE + path, body))

/** Replaces what was `known` when its form was opened. @throws Refusal when somebody else was faster */
export async function change(path, known, body, stampOf = ({ updated_at: at }) => at) {
  if (stampOf(await call('GET', path)) === stampOf(known)) return call('PUT', path, body)
  throw new Refusal(409, { message: 'Somebody changed it meanwhile.', details: { reason: 'version' } })
}

const answerOf = (response) => (response.status === 204 ? undefined : response.json())

/** All rows of a list, page by page: as many as there may be keys. */
export const listAll = (path, name) => pagesOf(BASE + path, name)

async function pagesOf(url, name) {
  const rows = []
  for (let after = ''; rows.length < 10_000;) {
    const answer = await answerOf(await send('GET', query(url, { limit: 200, after_id: after })))
    rows.push(...answer[name])
    after = answer.next_after_id
    if (after === '') break
  }
  return rows
}

/** A path with the parameters that have a value. */
export function query(path, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== '')
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}

/** A download; the session is looked at first, so that what is saved is no refusal. */
export const exportLink = (label, path) =>
  el(
    'a',
    {
      class: 'button',
      href: BASE + path,
      download: true,
      async onclick(event) {
        if (!event.isTrusted) return
        event.preventDefault()
        const { target } = event
        await reporting(async () => {
          await call('GET', 'settings')
          target.click()
        })
      },
    },
    label,
  )

let person
let signingIn

/** Who is signed in, and whether they are an admin; asked anew each time, since that may change in another tab. */
export async function whoAmI() {
  const { user, organization } = await answerOf(await send('GET', `${PLATFORM}me`))
  if (user.id !== person?.id || user.role !== person.role) showPerson(user, organization)
  person = { ...user, isAdmin: user.role === 'admin' }
  return person
}

/** What people are called, by id: all of them for admins, else only oneself. */
export async function peopleOf(me) {
  const users = me.isAdmin ? await pagesOf(`${PLATFORM}users`, 'users') : [me]
  return new Map(users.map(({ id, email }) => [id, email]))
}

/** Asks who is there; resolves when they are in. Several calls that were refused at once ask once. */
function signIn() {
  signingIn ??= askForSession().finally(() => (signingIn = undefined))
  return signingIn
}

const FIRST = ['With your account of this platform. ', el('code', {}, 'mem platform init'), ' makes the first one.']

function askForSession() {
  return new Promise((resolve) => {
    const before = person
    openDialog({
      title: before ? 'Your session has ended' : 'Sign in',
      fields: [
        el('p', { class: 'muted' }, before ? 'Sign in again: what you were at goes on.' : FIRST),
        field('E-mail', input('email', before?.email, { type: 'email', required: true, autocomplete: 'username' })),
        field(
          'Password',
          input('password', '', { type: 'password', required: true, autocomplete: 'current-password' }),
        ),
      ],
      submit: 'Sign in',
      isModal: true,
      async onSubmit(form) {
        const response = await request('POST', `${PLATFORM}login`, Object.fromEntries(form))
        if (!response.ok) throw await refusalOf(response)
        const { user } = await response.json()
        // Another person sees other things, and must not end what this one began.
        if (before && user.id !== before.id) location.reload()
        else resolve()
      },
    })
      .form.querySelector(before ? '[type=password]' : '[type=email]')
      .focus()
  })
}

/** Who is signed in, and the way out. */
function showPerson({ email, role }, organization) {
  document.querySelector('#who')?.remove()
  document.querySelector('.side nav [href$="/audit"]').hidden = role !== 'admin'
  const leave = el('button', { type: 'button', class: 'quiet', onclick: () => reporting(signOut) }, 'Sign out')
  const who = el('p', {}, email, el('br'), organization.name)
  document.querySelector('.side-foot').prepend(el('div', { id: 'who' }, who, leave))
}

async function signOut() {
  await request('POST', `${PLATFORM}logout`, {})
  location.reload()
}
