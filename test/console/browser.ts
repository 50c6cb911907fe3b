import { existsSync } from 'node:fs'
import {
  chromium,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
  type Response,
} from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from 'vitest'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
export const KEY = 'key-for-tests'
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

/** A person at the console: signed in, on the home page. */
export interface Desk {
  page: Page
  /** Goes to a path below `/ui`. */
  open(path: string): Promise<Response | null>
  /** Begins anew in another kind of browser. */
  begin(options: BrowserContextOptions): Promise<void>
  /** Calls REST, below `/v1`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at what came, whatever it is
  call(method: string, path: string, body?: unknown): Promise<any>
  workspace(): Promise<string>
  imprint(ws: string, content: string): Promise<string>
}

/** A server that pages come from. */
interface Site {
  readonly url: string
  stop(): Promise<void>
}

/** A browser at a site, and somebody before it. */
export interface Visit<S extends Site> {
  page: Page
  site: S
  /** Goes to a path below `/ui`. */
  open(path: string): Promise<Response | null>
  /** Begins anew in another kind of browser. */
  begin(options: BrowserContextOptions): Promise<void>
}

/**
 * Runs the tests in Chromium against a server; skipped with a message where there is none. Whatever the browser complains
 * about (a script that failed, something that the content security policy refused) fails the test.
 * @param enter signs in
 */
export function describeAtSite<S extends Site>(
  name: string,
  start: () => Promise<S>,
  enter: (visit: Visit<S>) => Promise<void>,
  define: (at: () => Visit<S>) => void,
): void {
  if (CHROMIUM === undefined) console.warn(`no Chromium on this machine: ${name} is not tested`)
  describe.skipIf(CHROMIUM === undefined)(`${name} [chromium]`, () => {
    let site: S
    let browser: Browser
    let context: BrowserContext
    let visit: Visit<S> | undefined
    let complaints: string[]

    const begin = async (options: BrowserContextOptions): Promise<void> => {
      context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options })
      const page = await context.newPage()
      page.setDefaultTimeout(10_000)
      complaints = []
      page.on('pageerror', (error) => complaints.push(error.message))
      page.on('console', (message) => {
        // Chromium reports every answer above 399 here; refusals are looked at where they are expected.
        const isAnswer = message.text().startsWith('Failed to load resource')
        // And htmx every request without one.
        const isSilence = /^htmx: htmx:(?:sse:)?error: (?:Failed to fetch|network error)/.test(message.text())
        if (message.type() === 'error' && !isAnswer && !isSilence) complaints.push(message.text())
      })
      visit = {
        page,
        site,
        open: (path) => page.goto(`${site.url}/ui${path}`),
        begin: async (other) => {
          await context.close()
          await begin(other)
        },
      }
      await enter(visit)
    }

    beforeAll(async () => {
      site = await start()
      browser = await chromium.launch({ executablePath: CHROMIUM ?? '', args: ARGS })
    })
    afterAll(async () => {
      await browser.close()
      await site.stop()
    })
    beforeEach(() => begin({}))
    afterEach(async () => {
      await context.close()
      expect(complaints).toEqual([])
    })
    define(() => {
      if (!visit) throw new Error('the browser is not up yet')
      return visit
    })
  })
}

/** Runs the tests as `describeAtSite` against a memory server with a key. */
export function describeInBrowser(name: string, define: (at: () => Desk) => void): void {
  const start = (): Promise<MemoryApi> => startMemoryApi({ dialect: 'sqlite', env: { MEM_API_KEY: KEY } })
  const enter = async ({ page, open }: Visit<MemoryApi>): Promise<void> => {
    await open('/login')
    await page.getByLabel('API key').fill(KEY)
    await page.keyboard.press('Enter')
    await page.waitForURL('**/ui/')
  }
  describeAtSite(name, start, enter, (at) => define(() => deskOf(at())))
}

function deskOf({ page, site: api, open, begin }: Visit<MemoryApi>): Desk {
  const headers = { Authorization: `Bearer ${KEY}` }
  const call: Desk['call'] = async (method, path, body) => (await api.call(method, path, body, { headers })).body
  return {
    page,
    open,
    begin,
    call,
    workspace: async () => (await call('POST', '/workspaces', { name: 'Lighthouse' })).id,
    imprint: async (ws, content) => (await call('POST', `/workspaces/${ws}/memories`, { content })).memory_id,
  }
}
