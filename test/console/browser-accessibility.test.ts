import { expect, test } from 'vitest'
import { describeInBrowser, type Desk } from './browser.ts'

/** Runs in the page: what a person who sees little, or uses no pointer, would stumble over. */
const PROBLEMS = `(() => {
  const problems = []
  const told = (element) => element.outerHTML.replace(/\\s+/g, ' ').slice(0, 140)
  const isShown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true })

  let last = 0
  for (const heading of document.querySelectorAll('h1, h2, h3, h4')) {
    if (!isShown(heading)) continue
    const level = Number(heading.tagName[1])
    if (level > last + 1) problems.push('a level is left out before ' + told(heading))
    last = level
  }
  for (const element of document.querySelectorAll('[aria-labelledby], [aria-describedby], [for], [popovertarget], [list]')) {
    const ids = ['aria-labelledby', 'aria-describedby', 'for', 'popovertarget', 'list'].flatMap((name) =>
      (element.getAttribute(name) ?? '').split(' ').filter(Boolean))
    for (const id of ids) if (!document.getElementById(id)) problems.push(id + ' is not there: ' + told(element))
  }
  const seen = new Set()
  for (const { id } of document.querySelectorAll('[id]')) {
    if (seen.has(id)) problems.push('an id twice: ' + id)
    seen.add(id)
  }
  for (const element of document.querySelectorAll('[tabindex]')) {
    if (element.tabIndex > 0) problems.push('a tab order of its own: ' + told(element))
  }
  for (const element of document.querySelectorAll('*')) {
    const names = element.getAttributeNames().filter((name) => /^on|^style$/.test(name))
    // The drawing sets styles by script, which the policy allows.
    if (names.length > 0 && !element.closest('[data-graph]')) problems.push('inline ' + names + ': ' + told(element))
  }
  for (const script of document.scripts) if (!script.src) problems.push('an inline script: ' + told(script))

  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1)
    canvas.fillStyle = colour
    canvas.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data
    return [r, g, b, a / 255]
  }
  const over = ([r, g, b, a], below) => [r, g, b].map((value, i) => value * a + below[i] * (1 - a))
  const groundOf = (element) => {
    if (!element) return over(rgba(getComputedStyle(document.documentElement).backgroundColor), [255, 255, 255])
    const own = rgba(getComputedStyle(element).backgroundColor)
    return own[3] === 1 ? own.slice(0, 3) : over(own, groundOf(element.parentElement))
  }
  const luminance = (colour) => {
    const [r, g, b] = colour.map((value) => value / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const opacityOf = (element) =>
    element ? Number(getComputedStyle(element).opacity) * opacityOf(element.parentElement) : 1
  const contrastOf = (colour, element) => {
    const ground = groundOf(element)
    const [r, g, b, a] = rgba(colour)
    const [light, dark] = [luminance(over([r, g, b, a * opacityOf(element)], ground)), luminance(ground)].sort((x, y) => y - x)
    return (light + 0.05) / (dark + 0.05)
  }
  const check = (element, colour, what) => {
    const contrast = contrastOf(colour, element)
    if (contrast < 4.5) problems.push(what + ' of contrast ' + contrast.toFixed(2) + ': ' + told(element))
  }
  for (const element of document.querySelectorAll('body *')) {
    const hasText = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '')
    const isField = element.matches('input:not([type=hidden]), textarea, select')
    if (element.closest('svg, noscript, canvas') || element.matches(':disabled') || !isShown(element)) continue
    if (hasText || isField) check(element, getComputedStyle(element).color, 'text')
    if (element.placeholder) check(element, getComputedStyle(element, '::placeholder').color, 'placeholder')
  }
  return problems
})()`

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
    const wanted = ['Skip to content', 'mem', 'Home', 'Workspaces', 'Audit', 'API', 'Settings', 'Theme', 'Sign out']
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
