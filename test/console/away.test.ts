import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startMemoryApi, type MemoryApi } from '../support/memory-api.ts'
import { freePort } from '../support/ports.ts'
import { PROBLEMS } from './accessibility.ts'
import { describeAtSite, describeInBrowser } from './browser.ts'
import { describeGatewayInBrowser } from './gateway-browser.ts'

const SAID = 'The server does not answer.'

describeInBrowser('a server that is away', (at) => {
  test('a page says so when a request comes to nothing, and goes on when the server is back', async () => {
    const { page, open, workspace, imprint } = at()
    const ws = await workspace()
    await imprint(ws, 'The lamp burns whale oil.')
    await open(`/workspaces/${ws}`)
    const note = page.getByText(SAID)
    const ask = async (): Promise<void> => {
      await page.getByRole('searchbox').fill('lamp')
      await page.keyboard.press('Enter')
    }
    expect(await note.isVisible()).toBe(false)
    await page.context().setOffline(true)
    await ask()
    await note.waitFor()
    // The next probe finds nobody, and the note stays.
    await page.waitForEvent('requestfailed', (request) => request.url().endsWith('icon.svg'))
    expect(await note.isVisible()).toBe(true)
    await page.context().setOffline(false)
    await note.waitFor({ state: 'hidden' })
    await ask()
    await page.locator('#hits').getByText('whale oil').waitFor()
  })

  test.each(['light', 'dark'] as const)('it can be read in the %s', async (colorScheme) => {
    const visit = at()
    await visit.begin({ colorScheme })
    const { page } = at()
    await page.evaluate("document.dispatchEvent(new Event('server:away'))")
    await page.getByText(SAID).waitFor()
    expect(await page.evaluate(PROBLEMS)).toEqual([])
  })
})

/** A server that can be ended, and begun again at the same place. */
interface Site {
  readonly url: string
  end(): Promise<void>
  begin(): Promise<void>
  stop(): Promise<void>
}

async function startSite(): Promise<Site> {
  const dataDir = mkdtempSync(join(tmpdir(), 'mem-test-'))
  const address = `127.0.0.1:${await freePort()}`
  const begin = (): Promise<MemoryApi> => startMemoryApi({ dialect: 'sqlite', dataDir, env: { MEM_ADDR: address } })
  let api = await begin()
  return {
    url: api.url,
    end: () => api.stop(),
    begin: async () => {
      api = await begin()
    },
    stop: async () => {
      await api.stop()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

describeAtSite(
  'a server that ends',
  startSite,
  async ({ open }) => void (await open('/')),
  (at) => {
    test.each(['/', '/kernel/approvals'])('%s says so unasked, and goes on when it is begun again', async (path) => {
      const { page, site, open } = at()
      await open(path)
      await site.end()
      await page.getByText(SAID).waitFor()
      await site.begin()
      await page.getByText(SAID).waitFor({ state: 'hidden' })
      await expect.poll(() => page.getByRole('heading', { level: 1 }).count()).toBe(1)
    })

    test('a bulk run says how far it came', async () => {
      const { page, site, open } = at()
      await open('/workspaces')
      await page.getByRole('button', { name: 'New workspace' }).click()
      await page.getByLabel('Name').fill('Bulk')
      await page.getByRole('button', { name: 'Create', exact: true }).click()
      await page.getByRole('link', { name: 'Bulk', exact: true }).click()
      const seed = page.locator('form[action$="/seed"]')
      await seed.getByLabel('How many').fill('10000')
      await seed.getByRole('button', { name: 'Make samples' }).click()
      await seed.getByText(/^[1-9]\d* done/).waitFor()
      await site.end()
      await seed.getByText(/^The connection broke after [1-9]\d*: .+ What was done stays\.$/).waitFor()
      await page.getByText(SAID).waitFor()
      await site.begin()
      await page.getByText(SAID).waitFor({ state: 'hidden' })
      await page.getByRole('link', { name: 'Memories' }).click()
      expect(
        await page
          .getByRole('table')
          .getByRole('link', { name: /^Note / })
          .count(),
      ).toBeGreaterThan(0)
    })
  },
)

describeGatewayInBrowser('a server that is away', (at) => {
  test('the pages of the gateway say so, and are shown again when it is back', async () => {
    const { page } = at()
    const note = page.getByText(SAID)
    await page.context().route('**/rest/v1/**', (route) => route.abort())
    await page.context().route('**/icon.svg', (route) => route.abort())
    await page.reload()
    await note.waitFor()
    await page.getByText('The server cannot be reached').waitFor()
    await page.context().unrouteAll()
    await note.waitFor({ state: 'hidden' })
    await page.getByRole('table', { name: 'Credentials' }).waitFor()
    await page.context().setOffline(true)
    await page.getByRole('button', { name: 'Disable Local' }).click()
    await note.waitFor()
    await page.context().setOffline(false)
    await note.waitFor({ state: 'hidden' })
    await page.getByRole('button', { name: 'Disable Local' }).click()
    await page.getByRole('button', { name: 'Enable Local' }).waitFor()
    expect(await page.getByText('cannot be reached').count()).toBe(0)
  })

  test('who signs out meanwhile is told that it did not happen', async () => {
    const { page } = at()
    await page.context().setOffline(true)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('The server cannot be reached').waitFor()
    await page.context().setOffline(false)
    await page.getByText(SAID).waitFor({ state: 'hidden' })
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('dialog', { name: 'Sign in' }).waitFor()
    expect(await page.getByText('cannot be reached').count()).toBe(0)
  })

  test('an answer that breaks off in the playground says so', async () => {
    const { page, open } = at()
    await open('/gateway/playground')
    const told = await page.evaluate(`import('/ui/static/gateway-stream.js')
      .then(({ readChat }) => {
        const body = new ReadableStream({ pull: (stream) => stream.error(new TypeError('network error')) })
        return readChat(new Response(body), () => undefined)
      })
      .catch(({ message }) => message)`)
    expect(told).toBe('the connection broke in the middle of the answer')
    await page.getByText(SAID).waitFor()
    await page.getByText(SAID).waitFor({ state: 'hidden' })
  })
})
