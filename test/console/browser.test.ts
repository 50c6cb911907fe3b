import { existsSync } from 'node:fs'
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync)
if (CHROMIUM === undefined) console.warn('no Chromium on this machine: the console is not tested in a browser')

const KEY = 'a key for tests'
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

describe.skipIf(CHROMIUM === undefined)('the console in a browser', () => {
  let api: MemoryApi
  let browser: Browser
  let context: BrowserContext
  let page: Page
  /** What the browser complained about: scripts that failed, whatever the content security policy refused. */
  let complaints: string[]

  const authorization = { headers: { Authorization: `Bearer ${KEY}` } }
  const call = async (method: string, path: string, body?: unknown) =>
    (await api.call(method, path, body, authorization)).body
  const workspace = async (): Promise<string> => (await call('POST', '/workspaces', { name: 'Lighthouse' })).id
  const imprint = async (ws: string, content: string): Promise<string> =>
    (await call('POST', `/workspaces/${ws}/memories`, { content })).memory_id
  const open = (path: string) => page.goto(`${api.url}/ui${path}`)

  const newPage = async (options: Parameters<Browser['newContext']>[0] = {}): Promise<void> => {
    context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options })
    page = await context.newPage()
    complaints = []
    page.on('pageerror', (error) => complaints.push(error.message))
    page.on('console', (message) => {
      // Chromium reports every answer above 399 here; refusals are looked at where they are expected.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) complaints.push(message.text())
    })
    await open('/login')
    await page.getByLabel('API key').fill(KEY)
    await page.keyboard.press('Enter')
    await page.waitForURL('**/ui/')
  }

  beforeAll(async () => {
    api = await startMemoryApi({ dialect: 'sqlite', env: { MEM_API_KEY: KEY } })
    browser = await chromium.launch({ executablePath: CHROMIUM ?? '', args: ARGS })
  })
  afterAll(async () => {
    await browser.close()
    await api.stop()
  })
  beforeEach(() => newPage())
  afterEach(async () => {
    await context.close()
    expect(complaints).toEqual([])
  })

  test('signing in: a wrong key is told, the right one opens, signing out closes', async () => {
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.waitForURL('**/ui/login')
    await page.getByLabel('API key').fill('wrong')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').getByText('not the key').waitFor()
    await open('/settings')
    expect(page.url()).toContain('/ui/login')
  })

  test('every page opens without a complaint, small enough, and has one heading of the first level', async () => {
    const ws = await workspace()
    const [a, b] = [await imprint(ws, 'The lamp is lit at dusk.'), await imprint(ws, 'Rye bread on Sundays.')]
    await call('POST', `/workspaces/${ws}/memories/${a}/edges`, { target_memory_id: b, edge_type: 'references' })
    const W = `/workspaces/${ws}`
    const tabs = ['collections', 'agents', 'bulk', 'settings'].map((tab) => `${W}?tab=${tab}`)
    const views = ['content', 'cells', 'edges&depth=2', 'history'].map((tab) => `${W}/memories/${a}?tab=${tab}`)
    const pages = ['/', '/workspaces', W, `${W}?q=lamp`, ...tabs, `${W}/memories`, ...views, `${W}/graph`, '/audit', `/audit?ws=${ws}`, '/settings']
    for (const path of pages) {
      let bytes = 0
      const count = async (response: { body(): Promise<Buffer> }) => {
        bytes += (await response.body().catch(() => Buffer.alloc(0))).length
      }
      page.on('requestfinished', async (request) => {
        const response = await request.response()
        if (response) await count(response)
      })
      await open(path)
      expect([path, await page.locator('h1').count()]).toEqual([path, 1])
      expect([path, await page.locator('main').count()]).toEqual([path, 1])
      page.removeAllListeners('requestfinished')
      if (!path.endsWith('/graph')) expect([path, bytes < 200_000]).toEqual([path, true])
    }
    const missing = await open('/nope')
    expect([missing?.status(), await page.getByRole('heading', { level: 1 }).textContent()]).toEqual([404, 'Not found'])
  })

  test('a workspace is created in a dialog, which a refusal leaves open and Escape closes', async () => {
    await open('/workspaces')
    await page.getByRole('button', { name: 'New workspace' }).click()
    const dialog = page.getByRole('dialog', { name: 'New workspace' })
    expect(await dialog.getByLabel('Name').evaluate((input) => input === document.activeElement)).toBe(true)
    await dialog.getByLabel('Name').fill('Harbour')
    await dialog.getByLabel('Embedding model').fill('nobody:nothing')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByRole('alert').getByText('invalid_input').waitFor()
    await page.keyboard.press('Escape')
    expect(await dialog.isVisible()).toBe(false)
    await page.getByRole('button', { name: 'New workspace' }).click()
    await dialog.getByLabel('Embedding model').fill('')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('status').getByText('Workspace Harbour is ready').waitFor()
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Harbour')
    await page.reload()
    expect(await page.getByText('is ready').count()).toBe(0)
  })

  test('imprint, review an edit, save it, compare, restore, forget', async () => {
    const ws = await workspace()
    await open(`/workspaces/${ws}/memories`)
    await page.getByRole('button', { name: 'Imprint a Memory' }).click()
    const dialog = page.getByRole('dialog', { name: 'Imprint a Memory' })
    await dialog.getByLabel('Content').fill('The keeper likes rye bread.\nHe bakes on Sundays.')
    await dialog.getByLabel('Tags').fill('topic=food')
    await dialog.getByRole('button', { name: 'Imprint', exact: true }).click()
    await page.getByRole('status').getByText('Imprinted').waitFor()
    await page.getByText('topic', { exact: true }).waitFor()

    await page.getByText('Rewrite').click()
    const text = page.getByRole('group').getByLabel('Content')
    expect(await text.inputValue()).toBe('The keeper likes rye bread.\nHe bakes on Sundays.')
    await text.fill('The keeper likes spelt bread.\nHe bakes on Sundays.')
    await page.getByRole('button', { name: 'Review changes' }).first().click()
    const review = page.getByRole('region', { name: 'Review' })
    await review.locator('tr.add').getByText('spelt').waitFor()
    expect(await review.locator('tr.delete').count()).toBe(1)
    await review.getByRole('button', { name: 'Save this version' }).click()
    await page.getByRole('status').getByText('Saved').waitFor()

    await page.getByText('Replace a passage').click()
    await page.getByLabel('Passage to replace').fill('nowhere')
    await page.getByRole('button', { name: 'Review changes' }).nth(1).click()
    await page.getByText('patch_anchor_not_found').waitFor()

    await page.getByRole('link', { name: 'History' }).click()
    await page.getByRole('link', { name: 'Compare with head' }).click()
    await page.locator('tr.add').getByText('spelt').waitFor()
    await page.getByRole('button', { name: /^Restore/ }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Restore', exact: true }).click()
    await page.getByRole('status').getByText('Restored').waitFor()
    expect(await page.locator('pre.text').textContent()).toContain('rye')

    await page.getByRole('button', { name: 'Forget' }).click()
    await page.getByRole('dialog', { name: 'Forget this Memory?' }).getByRole('button', { name: 'Forget' }).click()
    await page.getByRole('status').getByText('Forgotten').waitFor()
    expect((await call('GET', `/workspaces/${ws}/memories`)).memories).toEqual([])
  })

  test('recall answers in place, explains itself, and is saved as a pin', async () => {
    const ws = await workspace()
    await imprint(ws, 'The keeper of the lighthouse likes rye bread.')
    await imprint(ws, 'The lamp is lit at dusk.')
    await open(`/workspaces/${ws}`)
    await page.keyboard.press('Tab')
    await page.locator('h1').click()
    await page.keyboard.press('/')
    await page.keyboard.type('who eats bread')
    await page.keyboard.press('Enter')
    await page.getByText('1st by words, 1st by meaning').waitFor()
    expect(page.url()).toContain('q=who+eats+bread')
    expect(await page.locator('.hit').first().getByRole('meter').count()).toBe(2)
    await page.getByRole('button', { name: 'Save this query' }).click()
    await page.getByRole('dialog').getByLabel('Label').fill('Bread')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByRole('group', { name: 'Saved queries' }).getByRole('link', { name: 'Bread' }).click()
    await page.getByText('1st by words').first().waitFor()
    await page.getByRole('button', { name: 'Remove the saved query Bread' }).click()
    await page.getByRole('dialog', { name: 'Remove this saved query?' }).getByRole('button', { name: 'Remove', exact: true }).click()
    await page.getByText('The saved query is removed').waitFor()
  })

  test('tags, collections, agents and Edges have controls that work', async () => {
    const ws = await workspace()
    const [a, b] = [await imprint(ws, 'first'), await imprint(ws, 'second')]
    await open(`/workspaces/${ws}/memories/${a}`)
    await page.getByPlaceholder('key').fill('colour')
    await page.getByPlaceholder('value').fill('red')
    await page.getByRole('button', { name: 'Set' }).click()
    await page.getByText('Tag colour is set').waitFor()
    await page.getByRole('button', { name: 'Remove the tag colour' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Tag colour is removed').waitFor()

    await page.getByRole('link', { name: 'Edges' }).click()
    await page.getByLabel('Memory id').fill(b)
    await page.getByRole('button', { name: 'Link', exact: true }).click()
    await page.getByText('Linked.').waitFor()
    await page.getByRole('button', { name: 'Walk' }).click()
    await page.getByText('1 reached over 1 Edges').waitFor()
    await page.getByRole('button', { name: 'Unlink' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click()
    await page.getByText('The Edge is removed').waitFor()

    await open(`/workspaces/${ws}?tab=collections`)
    await page.getByLabel('New collection').fill('Letters')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText('Collection Letters is created').waitFor()
    await page.getByLabel('New collection').fill('Letters')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('alert').getByText('already_exists').waitFor()
    await page.getByRole('button', { name: 'Delete Letters' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('The collection is deleted').waitFor()

    await open(`/workspaces/${ws}?tab=agents`)
    await page.getByRole('button', { name: 'Register an agent' }).click()
    await page.getByRole('dialog').getByLabel('Agent id').fill('agent_keeper')
    await page.getByRole('dialog').getByRole('button', { name: 'Register' }).click()
    await page.getByText('Agent agent_keeper is registered').waitFor()
    await page.getByRole('button', { name: 'Deactivate agent_keeper' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Deactivate' }).click()
    await page.getByText('Agent agent_keeper is deactivated').waitFor()
  })

  test('workspace settings are saved; deleting asks for the id', async () => {
    const ws = await workspace()
    await open(`/workspaces/${ws}?tab=settings`)
    await page.getByLabel('Region').fill('north')
    await page.getByRole('button', { name: 'Save' }).first().click()
    await page.getByText('The settings of Lighthouse are saved').waitFor()
    await page.getByLabel('Auto-link').selectOption('on')
    await page.getByRole('button', { name: 'Save' }).last().click()
    await page.getByText('are saved').waitFor()
    expect(await call('GET', `/workspaces/${ws}`)).toMatchObject({ region: 'north', auto_link_enabled: true })
    await page.getByRole('button', { name: 'Delete workspace' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel(/to confirm/).fill('ws_other')
    await dialog.getByRole('button', { name: 'Delete workspace' }).click()
    await dialog.getByRole('alert').getByText('nothing was changed').waitFor()
    await dialog.getByLabel(/to confirm/).fill(ws)
    await dialog.getByRole('button', { name: 'Delete workspace' }).click()
    await page.getByText('Its ledger stays').waitFor()
  })

  test('files are uploaded; other types are refused in place', async () => {
    const ws = await workspace()
    await open(`/workspaces/${ws}/memories`)
    await page.getByRole('button', { name: 'Upload' }).first().click()
    const dialog = page.getByRole('dialog', { name: 'Upload files' })
    const file = (name: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from('# Log\n\nfog') })
    await dialog.getByLabel('Files').setInputFiles(file('log.html'))
    await dialog.getByRole('button', { name: 'Upload' }).click()
    await dialog.getByRole('alert').getByText('neither .txt nor .md').waitFor()
    await dialog.getByLabel('Files').setInputFiles([file('log.md'), file('other.txt')])
    await dialog.getByRole('button', { name: 'Upload' }).click()
    await page.getByText('2 files uploaded').waitFor()
    await page.getByText('source_filename=log.md').waitFor()
  })

  test('bulk: samples with progress, cancel, dump, and import elsewhere', async () => {
    const ws = await workspace()
    await open(`/workspaces/${ws}?tab=bulk`)
    const seed = page.locator('form[action$="/seed"]')
    await seed.getByLabel('How many').fill('25')
    await seed.getByRole('button', { name: 'Make samples' }).click()
    await seed.getByText('Done: 25 succeeded, 0 skipped, 0 failed.').waitFor()
    await seed.getByLabel('How many').fill('10000')
    await seed.getByRole('button', { name: 'Make samples' }).click()
    await seed.getByText(/^[1-9]\d* done/).waitFor()
    await seed.getByRole('button', { name: 'Cancel' }).click()
    await seed.getByText(/Cancelled after \d+\. What was done stays\./).waitFor()

    const other = await workspace()
    await imprint(other, 'kept')
    await open(`/workspaces/${other}?tab=bulk`)
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()])
    expect(download.suggestedFilename()).toBe(`${other}-dump.jsonl`)
    const dump = await download.path()
    await open(`/workspaces/${ws}?tab=bulk`)
    const form = page.locator('form[action$="/import"]')
    await form.getByLabel('File').setInputFiles(dump)
    await form.getByRole('button', { name: 'Import' }).click()
    await form.getByText('Done: 1 succeeded').waitFor()
    const replay = page.locator('form[action$="/replay"]')
    await replay.getByLabel('File').setInputFiles({ name: 'r.jsonl', mimeType: 'text/plain', buffer: Buffer.from('{"op":"dance"}') })
    await replay.getByRole('button', { name: 'Replay' }).click()
    await replay.getByText('Record 1: dance cannot be replayed').waitFor()
  })

  test('the graph is drawn, and told as a table', async () => {
    const ws = await workspace()
    const [a, b] = [await imprint(ws, 'first'), await imprint(ws, 'second')]
    await call('POST', `/workspaces/${ws}/memories/${a}/edges`, { target_memory_id: b, edge_type: 'mentions' })
    await open(`/workspaces/${ws}/graph`)
    await page.locator('.canvas canvas').first().waitFor()
    expect(await page.getByRole('table').getByRole('link').allTextContents()).toEqual(['first', 'second'])
    await page.getByLabel('Around').fill('mem_nope')
    const [response] = await Promise.all([page.waitForResponse(/graph\?seed=mem_nope/), page.getByRole('button', { name: 'Show' }).click()])
    expect(response.status()).toBe(404)
  })

  test('the audit filters, verifies and exports; the home page follows what happens', async () => {
    const ws = await workspace()
    await imprint(ws, 'x')
    await open(`/audit?ws=${ws}`)
    await page.getByLabel('Operation').selectOption('imprint')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.waitForURL(/ops=imprint/)
    expect(await page.getByRole('table').locator('tbody > tr').count()).toBe(1)
    await page.getByRole('button', { name: 'Verify the chain' }).click()
    await page.getByText('The chain is whole.').waitFor()
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Export CSV' }).click()])
    expect(download.suggestedFilename()).toBe(`${ws}-ledger.csv`)

    await open('/')
    await page.waitForTimeout(300)
    await call('POST', `/workspaces/${ws}/recall/pins`, { query: 'live' })
    await page.locator('#activity li').first().getByText('pin create').waitFor()
  })

  test('dark mode follows the system, and the toggle wins over it', async () => {
    const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
    const light = await ground()
    await page.emulateMedia({ colorScheme: 'dark' })
    const dark = await ground()
    expect(dark).not.toBe(light)
    await page.getByRole('button', { name: 'Theme' }).click()
    expect(await ground()).toBe(light)
    await page.reload()
    expect(await ground()).toBe(light)
  })

  test('all can be read without scripts, and an edit can be reviewed and saved', async () => {
    const ws = await workspace()
    const id = await imprint(ws, 'plain words')
    await context.close()
    await newPage({ javaScriptEnabled: false })
    const W = `/workspaces/${ws}`
    for (const path of ['/', '/workspaces', `${W}?q=words`, `${W}/memories`, `${W}/memories/${id}`, `${W}/memories/${id}?tab=cells`, `${W}/graph`, '/audit', '/settings']) {
      const response = await open(path)
      expect([path, response?.status()]).toEqual([path, 200])
    }
    await open(`${W}?q=words`)
    expect(await page.locator('.hit').count()).toBe(1)
    await open(`${W}/memories/${id}`)
    await page.getByText('Append').click()
    await page.getByLabel('Text to add at the end').fill(' and more')
    await page.getByRole('button', { name: 'Review changes' }).last().click()
    await page.getByRole('heading', { name: 'Review the changes' }).waitFor()
    await page.getByRole('button', { name: 'Save this version' }).click()
    expect(await page.locator('pre.text').textContent()).toBe('plain words and more')
    await open(`/workspaces/${ws}/memories/mem_nope`)
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Not found')
  })

  test('the keyboard reaches everything: skip link first, focus is seen, dialogs give it back', async () => {
    await open('/workspaces')
    await page.keyboard.press('Tab')
    const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim())
    expect(await focused()).toBe('Skip to content')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    expect(await focused()).toBe('New workspace')
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement ?? document.body).outlineStyle)
    expect(outline).toBe('solid')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Escape')
    expect(await focused()).toBe('New workspace')
  })

  test('every field and button has a name for screen readers', async () => {
    const ws = await workspace()
    const id = await imprint(ws, 'x')
    const W = `/workspaces/${ws}`
    for (const path of ['/', '/workspaces', W, `${W}?q=x`, `${W}/memories`, `${W}/memories/${id}`, `${W}/memories/${id}?tab=edges`, `${W}/memories/${id}?tab=history`, `${W}?tab=bulk`, `${W}?tab=agents`, `${W}?tab=settings`, `${W}/graph`, '/audit']) {
      await open(path)
      const nameless = await page.locator('input:not([type=hidden]), select, textarea:not([hidden]), button, a, meter, progress').evaluateAll((elements) =>
        elements
          .filter((element) => {
            const labels = 'labels' in element && element.labels instanceof NodeList ? element.labels.length : 0
            return labels === 0 && !element.getAttribute('aria-label') && !element.textContent?.trim() && !element.closest('dd')
          })
          .map((element) => element.outerHTML.slice(0, 120)),
      )
      expect([path, nameless]).toEqual([path, []])
    }
  })

  test('a page of another size keeps everything within its width', async () => {
    const ws = await workspace()
    const id = await imprint(ws, `${'long '.repeat(200)}${'x'.repeat(500)}`)
    await page.setViewportSize({ width: 390, height: 800 })
    const W = `/workspaces/${ws}`
    for (const path of ['/', '/workspaces', `${W}?q=long`, `${W}/memories`, `${W}/memories/${id}`, `${W}?tab=bulk`, '/audit', '/settings']) {
      await open(path)
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
      expect([path, over]).toEqual([path, 0])
    }
  })
})
