import { expect, test } from 'vitest'
import { PROBLEMS } from './accessibility.ts'
import { describeGatewayInBrowser } from './gateway-browser.ts'

/** Each page, and what opens on it. */
const PAGES: readonly [section: string, dialogs: readonly string[]][] = [
  ['credentials', ['Add a credential', 'Edit Claude', 'Test Claude', 'Delete Claude']],
  ['models', ['Add an alias', 'Edit helper']],
  ['playground', []],
  ['usage', []],
  ['keys', ['Add a key', 'Rotate Agents']],
  ['audit', []],
  ['settings', []],
]

describeGatewayInBrowser('the console of the gateway for everyone', (at) => {
  test('gateway#111 headings go level by level, text stands out in both themes, nothing is inline', async () => {
    const { site } = at()
    const budget = { limit_usd: '5', window: 'day' }
    await site.manage('POST', 'keys', { name: 'Agents', budget })
    site.local.setScript([{ marker: 'local-broken', status: 401 }])
    expect(await site.chat('helper')).toBe(200)
    expect(await site.chat('local-broken')).toBe(502)
    const problems: [where: string, problems: string[]][] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      await at().begin({ colorScheme, reducedMotion: 'reduce' })
      const { page, open } = at()
      const look = async (where: string): Promise<void> => {
        await page.evaluate('document.querySelectorAll("details").forEach((each) => { each.open = true })')
        problems.push([`${colorScheme} ${where}`, await page.evaluate<string[]>(PROBLEMS)])
      }
      for (const [section, dialogs] of PAGES) {
        await open(`/gateway/${section}`)
        await page.locator('#gateway[aria-busy="false"]').waitFor()
        await look(section)
        for (const name of dialogs) {
          await page.getByRole('button', { name, exact: true }).click()
          await look(name)
          await page.keyboard.press('Escape')
          expect(
            await page
              .locator(':focus')
              .getAttribute('aria-label')
              .catch(() => ''),
          ).toBe(name.startsWith('Add') ? null : name)
        }
      }
    }
    expect(problems).toHaveLength(2 * PAGES.reduce((sum, [, dialogs]) => sum + 1 + dialogs.length, 0))
    expect(problems.filter(([, found]) => found.length > 0)).toEqual([])
  })

  test('gateway#111 at 400 pixels nothing is wider than the screen, and rows keep their labels', async () => {
    await at().begin({ viewport: { width: 400, height: 800 } })
    const { page, open } = at()
    for (const [section] of PAGES) {
      await open(`/gateway/${section}`)
      await page.locator('#gateway[aria-busy="false"]').waitFor()
      expect([section, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([section, 400])
      const wide = await page.evaluate(
        '[...document.querySelectorAll(".scroll")].filter((each) => each.scrollWidth > each.clientWidth).length',
      )
      expect([section, wide]).toEqual([section, 0])
    }
    await open('/gateway/credentials')
    await page.getByRole('row', { name: 'Claude' }).waitFor()
    expect(await page.evaluate('getComputedStyle(document.querySelector("td"), "::before").content')).toBe('"Health"')
  })

  test('gateway#111 Tab goes through a page from top to bottom, and a dialog keeps it', async () => {
    const { page } = at()
    const reached: string[] = []
    for (let i = 0; i < 40; i++) {
      await page.keyboard.press('Tab')
      const name = await page.evaluate<string>(
        "document.activeElement === document.body ? '' : (document.activeElement.ariaLabel ?? document.activeElement.textContent).trim()",
      )
      if (name === '' || name === reached[0]) break
      reached.push(name)
    }
    const menu = ['Credentials', 'Models', 'Playground', 'Usage', 'Keys', 'Audit', 'Settings', 'Memory']
    expect(reached.slice(0, 2 + menu.length)).toEqual(['Skip to content', 'mem', ...menu])
    expect(reached.slice(2 + menu.length, 6 + menu.length)).toEqual([
      'Sign out',
      'Theme',
      'Add a credential',
      'Credentials',
    ])
    expect(reached.at(-1)).toMatch(/^Delete /)

    await page.getByRole('button', { name: 'Add a credential' }).focus()
    await page.keyboard.press('Enter')
    for (let i = 0; i < 30; i++) {
      await page.keyboard.press('Tab')
      expect(
        await page.evaluate(
          'document.activeElement === document.body || document.activeElement.closest("dialog") !== null',
        ),
      ).toBe(true)
    }
    await page.keyboard.press('Escape')
    await expect.poll(() => page.locator(':focus').textContent()).toBe('Add a credential')
  })
})
