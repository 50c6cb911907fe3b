import { join } from 'node:path'
import { Eta } from 'eta'
import { packageRoot } from '../base/package-root.ts'
import { version } from '../base/version.ts'
import type { MenuEntry } from './menu.ts'
import { createFormat, escapeHtml, paths } from './format.ts'

const eta = new Eta({
  views: join(packageRoot, 'templates/console'),
  cache: true,
  autoEscape: true,
  functionHeader: 'const { format, paths, post, hidden } = it',
})

/** What every template sees beside its own data. */
export interface Frame {
  /** Shown in the title bar of the browser. */
  title: string
  csrf: string
  /** The entry of the menu that the page belongs to. */
  section: string
  menu: readonly MenuEntry[]
  /** Signing out makes sense. */
  hasSession: boolean
  /** A note of what the last action did. */
  flash?: string | undefined
  now: number
}

/** Renders a template to HTML; every value in it is escaped. */
export function render(template: string, data: object, frame: Frame): string {
  return eta.render(template, { ...frame, ...data, ...helpers(frame.now, frame.csrf), version })
}

/** Renders a piece of a page. */
export function renderFragment(template: string, data: object, now: number, csrf = ''): string {
  return eta.render(template, { ...data, ...helpers(now, csrf) })
}

/** What templates call: see `functionHeader`. */
const helpers = (now: number, csrf: string): object => ({
  format: createFormat(now),
  paths,
  /** Attributes of a form that posts to an action: works alone, and better with htmx. */
  post: (action: string, multipart = false) =>
    `method="post" action="/ui/api/${action}" hx-post="/ui/api/${action}" hx-target="find .answer" hx-swap="innerHTML" ` +
    `hx-disable="find button[type=submit]"${multipart ? ' enctype="multipart/form-data" hx-encoding="multipart/form-data"' : ''}`,
  /** Fields that are not seen, the token among them. */
  hidden: (fields: Readonly<Record<string, string | undefined>> = {}) =>
    Object.entries({ csrf_token: csrf, ...fields })
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value ?? '')}">`)
      .join(''),
})
