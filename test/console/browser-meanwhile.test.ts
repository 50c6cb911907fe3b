import { expect, test } from 'vitest'
import { describeInBrowser, KEY } from './browser.ts'

describeInBrowser('what happens elsewhere while a page is open', (at) => {
  const signInElsewhere = async (): Promise<void> => {
    const tab = await at().page.context().newPage()
    await tab.goto(
      at()
        .page.url()
        .replace(/\/ui\/.*/, '/ui/login'),
    )
    await tab.getByLabel('API key').fill(KEY)
    await tab.keyboard.press('Enter')
    await tab.waitForURL('**/ui/')
    await tab.close()
  }

  test('a session that ended loses nothing: after another sign-in the same form is sent', async () => {
    const { page, open, call, workspace, imprint } = at()
    const ws = await workspace()
    const id = await imprint(ws, 'The lamp is lit.')
    await open(`/workspaces/${ws}/memories/${id}`)
    await page.getByText('Append', { exact: true }).click()
    await page.getByLabel('Text to add').fill(' Long work.')
    await page.context().clearCookies()
    const review = page.getByRole('button', { name: 'Review changes' })
    await review.click()
    await page.getByText('Your session has ended').waitFor()
    expect(await page.getByRole('link', { name: 'Sign in' }).getAttribute('target')).toBe('_blank')
    await signInElsewhere()
    await review.click()
    await page.getByText('This form is out of date. Send it again').waitFor()
    await review.click()
    await page.getByRole('button', { name: 'Save this version' }).click()
    await page.getByRole('status').getByText('Saved').waitFor()
    expect((await call('GET', `/workspaces/${ws}/memories/${id}`)).content).toBe('The lamp is lit. Long work.')
  })

  test('so does a bulk run', async () => {
    const { page, open, call, workspace } = at()
    const ws = await workspace()
    await open(`/workspaces/${ws}?tab=bulk`)
    await page.context().clearCookies()
    await signInElsewhere()
    const seed = page.locator('form[action$="/seed"]')
    await seed.getByLabel('How many').fill('3')
    await seed.getByRole('button', { name: 'Make samples' }).click()
    await seed.getByText('out of date').waitFor()
    await seed.getByRole('button', { name: 'Make samples' }).click()
    await seed.getByText('Done: 3 succeeded').waitFor()
    expect((await call('GET', `/workspaces/${ws}/memories`)).memories).toHaveLength(3)
  })

  test('recall leads to the sign-in when the session ended, and to what is wrong when the workspace is gone', async () => {
    const { page, open, call, workspace } = at()
    const ws = await workspace()
    const ask = async (): Promise<void> => {
      await page.getByRole('searchbox').fill('lamp')
      await page.keyboard.press('Enter')
    }
    await open(`/workspaces/${ws}`)
    await page.context().clearCookies()
    await ask()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect(page.url()).toMatch(/\/ui\/login$/)
    await signInElsewhere()
    await open(`/workspaces/${ws}`)
    await call('DELETE', `/workspaces/${ws}`)
    await ask()
    await page.getByRole('heading', { name: 'Not found' }).waitFor()
  })

  test('an edit of a text that somebody changed is reviewed beside the text of now', async () => {
    const { page, open, call, workspace, imprint } = at()
    const ws = await workspace()
    const id = await imprint(ws, 'one\ntwo')
    const M = `/workspaces/${ws}/memories/${id}`
    const save = page.getByRole('button', { name: 'Save this version' })
    await open(M)
    await page.getByText('Replace a passage').click()
    await page.getByLabel('Passage to replace').fill('two')
    await page.getByLabel('By', { exact: true }).fill('2')
    await page.getByRole('button', { name: 'Review changes' }).click()
    await save.waitFor()
    await call('POST', `${M}:append`, { content: '\nthree' })
    await save.click()
    await page.getByRole('alert').getByText('Somebody changed this Memory meanwhile').waitFor()
    await page.getByRole('button', { name: 'Review changes' }).click()
    const review = page.getByRole('region', { name: 'Review' })
    await review.getByText('Beside the text that stands there now').waitFor()
    await review.getByText('three').waitFor()
    await save.click()
    await page.getByRole('status').getByText('Saved').waitFor()
    expect((await call('GET', M)).content).toBe('one\n2\nthree')
  })

  test('without scripts what came too late is reviewed again too', async () => {
    const { begin, call, workspace, imprint } = at()
    const ws = await workspace()
    const id = await imprint(ws, 'one')
    const M = `/workspaces/${ws}/memories/${id}`
    await begin({ javaScriptEnabled: false })
    const { page, open } = at()
    await open(M)
    await page.getByText('Append', { exact: true }).click()
    await page.getByLabel('Text to add').fill(' three')
    await page.getByRole('button', { name: 'Review changes' }).click()
    await call('POST', `${M}:append`, { content: ' two' })
    await page.getByRole('button', { name: 'Save this version' }).click()
    await page.getByText('Somebody changed this Memory meanwhile').waitFor()
    await page.getByRole('button', { name: 'Send again' }).click()
    await page.getByRole('button', { name: 'Save this version' }).click()
    await page.getByRole('status').getByText('Saved').waitFor()
    expect((await call('GET', M)).content).toBe('one two three')
  })

  test('the home page keeps what happened last, however long it is open', async () => {
    const { page, open, workspace } = at()
    await workspace()
    await open('/')
    const rows = page.locator('#activity li')
    await page.evaluate(`{
      const list = document.getElementById('activity')
      for (let n = 1; n <= 300; n++) list.prepend(Object.assign(document.createElement('li'), { textContent: 'entry ' + n }))
    }`)
    await expect.poll(() => rows.count()).toBe(200)
    expect(await rows.first().textContent()).toBe('entry 300')
  })
})
