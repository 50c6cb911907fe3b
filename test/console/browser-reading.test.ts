import { expect, test } from 'vitest'
import { describeInBrowser } from './browser.ts'

/** The page and all that it loads, as it travels. */
const LOADED_BYTES =
  "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]" +
  '.reduce((sum, entry) => sum + entry.encodedBodySize, 0)'

describeInBrowser('reading the console in a browser', (at) => {
  test('every page opens without a complaint, small enough, and has one heading of the first level', async () => {
    const { page, open, call, workspace, imprint } = at()
    const ws = await workspace()
    const [a, b] = [await imprint(ws, 'The lamp is lit at dusk.'), await imprint(ws, 'Rye bread on Sundays.')]
    await call('POST', `/workspaces/${ws}/memories/${a}/edges`, { target_memory_id: b, edge_type: 'references' })
    const W = `/workspaces/${ws}`
    const tabs = ['collections', 'agents', 'bulk', 'settings'].map((tab) => `${W}?tab=${tab}`)
    const views = ['content', 'cells', 'edges&depth=2', 'history'].map((tab) => `${W}/memories/${a}?tab=${tab}`)
    const pages = [
      '/',
      '/workspaces',
      W,
      `${W}?q=lamp`,
      ...tabs,
      `${W}/memories`,
      ...views,
      `${W}/graph`,
      '/audit',
      `/audit?ws=${ws}`,
      '/reference',
      '/settings',
    ]
    const sizes = new Map<string, number>()
    for (const path of pages) {
      await open(path)
      expect([path, await page.locator('h1').count()]).toEqual([path, 1])
      expect([path, await page.locator('main').count()]).toEqual([path, 1])
      sizes.set(path, await page.evaluate<number>(LOADED_BYTES))
    }
    sizes.delete(`${W}/graph`)
    expect(Math.max(...sizes.values())).toBeLessThan(200_000)
    const missing = await open('/nope')
    expect([missing?.status(), await page.getByRole('heading', { level: 1 }).textContent()]).toEqual([404, 'Not found'])
  })

  test('the graph is drawn, and told as a table', async () => {
    const { page, open, call, workspace, imprint } = at()
    const ws = await workspace()
    const [a, b] = [await imprint(ws, 'first'), await imprint(ws, 'second')]
    await call('POST', `/workspaces/${ws}/memories/${a}/edges`, { target_memory_id: b, edge_type: 'mentions' })
    await open(`/workspaces/${ws}/graph`)
    await page.locator('.canvas canvas').first().waitFor()
    expect(await page.getByRole('table').getByRole('link').allTextContents()).toEqual(['first', 'second'])
    await page.getByLabel('Around').fill('mem_nope')
    const [response] = await Promise.all([
      page.waitForResponse(/graph\?seed=mem_nope/),
      page.getByRole('button', { name: 'Show' }).click(),
    ])
    expect(response.status()).toBe(404)
  })

  test('in a small graph no name covers another one, and it is drawn alike each time', async () => {
    const { page, open, call, workspace, imprint } = at()
    const ws = await workspace()
    const ids: string[] = []
    for (let n = 0; n < 12; n++)
      ids.push(await imprint(ws, `A text whose beginning is long enough, ${n}, for two lines`))
    for (const [n, id] of ids.entries()) {
      const target = ids[(n * 5 + 1) % 12]
      if (target !== id) {
        await call('POST', `/workspaces/${ws}/memories/${id}/edges`, {
          target_memory_id: target,
          edge_type: 'mentions',
        })
      }
    }
    const boxes = async (): Promise<{ x: number; y: number; w: number; h: number }[]> => {
      await open(`/workspaces/${ws}/graph`)
      await page.locator('.canvas canvas').first().waitFor()
      return page.evaluate(`document.querySelector('[data-graph]')._cyreg.cy.nodes()
        .map((node) => node.boundingBox()).map(({ x1: x, y1: y, w, h }) => ({ x, y, w, h }))`)
    }
    const drawn = await boxes()
    const covered = drawn.filter((a, i) =>
      drawn.some((b, j) => i < j && a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h),
    )
    expect([drawn.length, covered]).toEqual([12, []])
    expect(await boxes()).toEqual(drawn)
  })

  test('dark mode follows the system, and the toggle wins over it', async () => {
    const { page } = at()
    const ground = () => page.evaluate<string>('getComputedStyle(document.documentElement).backgroundColor')
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
    const { begin, workspace, imprint } = at()
    const ws = await workspace()
    const id = await imprint(ws, 'plain words')
    await begin({ javaScriptEnabled: false })
    const { page, open } = at()
    const W = `/workspaces/${ws}`
    for (const path of [
      '/',
      '/workspaces',
      `${W}?q=words`,
      `${W}/memories`,
      `${W}/memories/${id}`,
      `${W}/memories/${id}?tab=cells`,
      `${W}/graph`,
      '/audit',
      '/reference',
      '/settings',
    ]) {
      const response = await open(path)
      expect([path, response?.status()]).toEqual([path, 200])
    }
    await open(`${W}?q=words`)
    await expect.poll(() => page.locator('.hit').count()).toBe(1)
    await open(`${W}/memories/${id}`)
    await page.getByText('Append').click()
    await page.getByLabel('Text to add at the end').fill(' and more')
    await page.getByRole('button', { name: 'Review changes' }).click()
    await page.getByRole('heading', { name: 'Review the changes' }).waitFor()
    await page.getByRole('button', { name: 'Save this version' }).click()
    expect(await page.locator('pre.text').textContent()).toBe('plain words and more')
    await open(`/workspaces/${ws}/memories/mem_nope`)
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Not found')
  })

  test('the keyboard reaches everything: skip link first, focus is seen, dialogs give it back', async () => {
    const { page, open } = at()
    await open('/workspaces')
    await page.keyboard.press('Tab')
    const focused = () => page.evaluate<string>('document.activeElement.textContent.trim()')
    expect(await focused()).toBe('Skip to content')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Tab')
    expect(await focused()).toBe('New workspace')
    const outline = await page.evaluate<string>('getComputedStyle(document.activeElement).outlineStyle')
    expect(outline).toBe('solid')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Escape')
    expect(await focused()).toBe('New workspace')
  })

  test('every field and button has a name for screen readers', async () => {
    const { page, open, workspace, imprint } = at()
    const ws = await workspace()
    const id = await imprint(ws, 'x')
    const W = `/workspaces/${ws}`
    for (const path of [
      '/',
      '/workspaces',
      W,
      `${W}?q=x`,
      `${W}/memories`,
      `${W}/memories/${id}`,
      `${W}/memories/${id}?tab=edges`,
      `${W}/memories/${id}?tab=history`,
      `${W}?tab=bulk`,
      `${W}?tab=agents`,
      `${W}?tab=settings`,
      `${W}/graph`,
      '/audit',
      '/reference',
    ]) {
      await open(path)
      const nameless = await page
        .locator('input:not([type=hidden]), select, textarea:not([hidden]), button, a, meter, progress')
        .evaluateAll((elements) =>
          elements
            .filter((element) => {
              const labels = 'labels' in element ? Number(Reflect.get(Object(element.labels), 'length') ?? 0) : 0
              return (
                labels === 0 &&
                !element.getAttribute('aria-label') &&
                !element.textContent?.trim() &&
                !element.closest('dd')
              )
            })
            .map((element) => element.outerHTML.slice(0, 120)),
        )
      expect([path, nameless]).toEqual([path, []])
    }
  })

  test('a page of another size keeps everything within its width', async () => {
    const { page, open, call, workspace, imprint } = at()
    const ws = await workspace()
    const id = await imprint(ws, `${'long '.repeat(200)}${'x'.repeat(500)}`)
    const long = 'n'.repeat(190)
    await call('POST', `/workspaces/${ws}/collections`, { name: long })
    await call('POST', `/workspaces/${ws}/agents`, { agent_id: `agent_${long}`, identity_provider: 'opaque' })
    await call('POST', `/workspaces/${ws}/recall/pins`, { query: long })
    await call('PUT', `/workspaces/${ws}/memories/${id}/tags/${'k'.repeat(128)}`, { value: long })
    const W = `/workspaces/${ws}`
    const pages = [
      '/',
      '/workspaces',
      `${W}?q=long`,
      `${W}/memories`,
      `${W}/memories/${id}`,
      `${W}?tab=bulk`,
      `${W}/memories/${id}?tab=edges`,
      `${W}?tab=agents`,
      '/audit',
      '/reference',
      '/settings',
    ]
    for (const [width, path] of [390, 1280].flatMap((size) => pages.map((each) => [size, each] as const))) {
      await page.setViewportSize({ width, height: 800 })
      await open(path)
      const over = await page.evaluate<number>(
        'document.documentElement.scrollWidth - document.documentElement.clientWidth',
      )
      expect([width, path, over]).toEqual([width, path, 0])
      const hidden = await page.evaluate<string[]>(`(() => {
        const isCut = (term) => term.scrollWidth > term.clientWidth
        const isAside = (link) => {
          const { left, right } = link.getBoundingClientRect()
          return left < 0 || right > document.documentElement.clientWidth
        }
        const cut = [...document.querySelectorAll('.facts dt')].filter(isCut)
        const broken = [...document.querySelectorAll('td .id')].filter((id) => id.offsetHeight > 30)
        const aside = [...document.querySelectorAll('nav [aria-current]')].filter(isAside)
        return [...cut, ...broken, ...aside].map((element) => element.textContent.trim())
      })()`)
      expect([width, path, hidden]).toEqual([width, path, []])
    }
  })
})
