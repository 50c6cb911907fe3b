import { expect, test } from 'vitest'
import { PROBLEMS } from './accessibility.ts'
import { describeInBrowser, type Desk } from './browser.ts'

/** A workspace with something of everything, and the addresses of all pages over it. */
async function everyPage({ call, workspace, imprint }: Desk): Promise<string[]> {
  const ws = await workspace()
  const [a, b] = [await imprint(ws, '# Lamp\n\nThe lamp is lit at dusk.'), await imprint(ws, 'User: I like rye bread.')]
  await call('POST', `/workspaces/${ws}/memories/${a}/edges`, { target_memory_id: b, edge_type: 'references' })
  await call('PUT', `/workspaces/${ws}/memories/${a}/tags/kind`, { value: 'rule' })
  await call('POST', `/workspaces/${ws}/collections`, { name: 'Logbook' })
  await call('POST', `/workspaces/${ws}/recall/pins`, { query: 'lamp' })
  const { head_watermark: first } = await call('GET', `/workspaces/${ws}/memories/${a}`)
  await call('PUT', `/workspaces/${ws}/memories/${a}`, { content: 'The lamp is out.', expected_watermark: first })
  const empty = await workspace()
  const W = `/workspaces/${ws}`
  const M = `${W}/memories/${a}`
  return [
    '/',
    '/workspaces',
    W,
    `${W}?q=lamp&depth=1`,
    `${W}?q=lamp&k=x`,
    ...['collections', 'agents', 'bulk', 'settings'].map((tab) => `${W}?tab=${tab}`),
    `${W}/memories`,
    ...['content', 'cells', 'edges&depth=2', `history&from=${first}`].map((tab) => `${M}?tab=${tab}`),
    `${W}/graph`,
    `/workspaces/${empty}/memories`,
    `/workspaces/${empty}/graph`,
    '/audit',
    `/audit?ws=${ws}&since=x`,
    '/reference',
    '/settings',
    '/nope',
  ]
}

describeInBrowser('the console for everyone', (at) => {
  test('headings go level by level, text stands out in both themes, nothing is inline', async () => {
    const pages = await everyPage(at())
    const problems: [theme: string, path: string, problems: string[]][] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      await at().begin({ colorScheme, reducedMotion: 'reduce' })
      const { page, open } = at()
      for (const path of pages) {
        await open(path)
        await page.evaluate('document.querySelectorAll("details:not([name])").forEach((each) => { each.open = true })')
        problems.push([colorScheme, path, await page.evaluate<string[]>(PROBLEMS)])
      }
    }
    expect(problems.length).toBe(2 * pages.length)
    expect(problems.filter(([, , found]) => found.length > 0)).toEqual([])
  })

  test('Tab goes through a page from top to bottom, and comes to every control', async () => {
    const { page, open, workspace } = at()
    await open(`/workspaces/${await workspace()}?tab=settings`)
    const reached: string[] = []
    for (;;) {
      await page.keyboard.press('Tab')
      const name = await page.evaluate<string>(
        "document.activeElement === document.body ? '' : document.activeElement.ariaLabel ?? (document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim().split('\\n')[0]",
      )
      if (name === '' || name === reached[0]) break
      reached.push(name)
    }
    const wanted = [
      'Skip to content',
      'mem',
      'Home',
      'Workspaces',
      'Audit',
      'API',
      'Settings',
      'Objectives',
      'Runs',
      'Approvals',
      'Activity',
      'Deployments',
      'Gateway',
      'Theme',
      'Sign out',
    ]
    expect(reached.slice(0, wanted.length)).toEqual(wanted)
    expect(reached.at(-1)).toBe('Delete workspace')
  })

  test('an operation of the API is tried by keyboard, and its answer is told', async () => {
    const { page, open, workspace } = at()
    const ws = await workspace()
    await open('/reference#recall')
    const form = page.locator('#recall form')
    await form.getByLabel('ws').fill(ws)
    await form.getByLabel('Body').fill('{"query": "lamp"}')
    await form.getByRole('button', { name: 'Send' }).focus()
    await page.keyboard.press('Enter')
    await form.getByRole('status').getByText('200').first().waitFor()
    expect(await form.getByLabel('Body of the answer').textContent()).toContain('"results": []')
    expect(await form.getByLabel('Body', { exact: false }).first().inputValue()).toBe('{"query": "lamp"}')
    await form.getByLabel('ws').fill('ws_none')
    await page.keyboard.press('Enter')
    await form.getByRole('status').getByText('404').first().waitFor()
    expect(await page.content()).not.toContain('key-for-tests')
  })
})
