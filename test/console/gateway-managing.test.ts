import { readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { PASSWORD } from '../platform/support.ts'
import { CLAUDE, describeGatewayInBrowser, MEMBER, signIn } from './gateway-browser.ts'

describeGatewayInBrowser('managing the gateway in a browser', (at) => {
  test('gateway#111 a key is shown once, works, is limited, rotated, disabled, deleted', async () => {
    const { page, open, site } = at()
    await open('/gateway/keys')
    await page.getByRole('button', { name: 'Add a key' }).click()
    const form = page.getByRole('dialog', { name: 'Add a key' })
    await form.getByLabel('Name', { exact: true }).fill('Nightly')
    await form.getByLabel('Only these models').fill(`${CLAUDE}, local-*`)
    await form.getByLabel('Budget, USD').fill('a lot')
    await form.getByRole('button', { name: 'Add' }).click()
    await form.getByRole('alert').getByText('decimal USD').waitFor()
    expect(await form.locator(':focus').getAttribute('name')).toBe('limit_usd')
    await form.getByLabel('Budget, USD').fill('250')
    await form.getByLabel('Ends at').fill('2099-12-31T23:59')
    await form.getByRole('button', { name: 'Add' }).click()
    const shown = page.getByRole('dialog', { name: 'The key Nightly' })
    const token = await shown.getByLabel('Token').inputValue()
    expect(token).toMatch(/^mvk_[\w-]{43}$/)
    await shown.getByRole('button', { name: 'I have it' }).click()
    await expect.poll(() => page.content()).not.toContain(token)
    expect(await site.chat(CLAUDE, token)).toBe(200)
    expect(await site.chat('gemini-2.5-pro', token)).toBe(403)
    const row = page.getByRole('row', { name: 'Nightly' })
    await row.getByText('2099-12-31 23:59').waitFor()

    await page.getByRole('button', { name: 'Edit Nightly' }).click()
    const edit = page.getByRole('dialog', { name: 'Edit Nightly' })
    expect(await edit.getByLabel('Only these models').inputValue()).toBe(`${CLAUDE}\nlocal-*`)
    await edit.getByLabel('Requests a minute').fill('60')
    await edit.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Nightly is saved.').waitFor()
    const [kept] = (await site.manage('GET', 'keys')).keys
    expect(kept).toMatchObject({
      budget: { limit_usd: '250', window: 'month' },
      limits: { requests_per_minute: 60 },
      expires_at: '2099-12-31T23:59:00.000Z',
    })

    await page.getByRole('button', { name: 'Rotate Nightly' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
    const next = await shown.getByLabel('Token').inputValue()
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    expect(await shown.getByLabel('Token').inputValue()).toBe(next)
    await shown.getByRole('button', { name: 'I have it' }).click()
    expect([await site.chat(CLAUDE, token), await site.chat(CLAUDE, next)]).toEqual([401, 200])
    await page.reload()
    await row.getByText(/last used \d{4}-\d\d-\d\d \d\d:\d\d UTC/).waitFor()
    await page.getByRole('button', { name: 'Disable Nightly' }).click()
    await row.getByText('disabled', { exact: true }).waitFor()
    expect(await site.chat(CLAUDE, next)).toBe(401)
    await page.getByRole('button', { name: 'Delete Nightly' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await page.getByText('Nightly is deleted.').waitFor()
  })

  test('gateway#111 usage counts each request, says what is unknown, tells one whole, and is exported', async () => {
    const { page, open, site } = at()
    site.claude.setScript({ usage: { input: 1000, output: 200 } })
    site.local.setScript([{ marker: 'local-broken', status: 500 }])
    expect(await site.chat(CLAUDE)).toBe(200)
    expect(await site.chat('local-model')).toBe(200)
    expect(await site.chat('local-broken')).toBe(502)
    expect(await site.chat('nobody-has-it')).toBe(404)
    await open('/gateway/usage')
    const counted = page.getByRole('table', { name: 'By group' })
    await expect
      .poll(async () => {
        await page.getByRole('button', { name: 'Refresh' }).click()
        return (await counted.getByRole('row', { name: /^local-broken/ }).allTextContents()).join('')
      })
      .toMatch(/^local-broken110/)
    expect(await counted.getByRole('row', { name: /^local-model/ }).textContent()).toMatch(/unknown$/)
    expect(await counted.getByRole('row', { name: new RegExp(`^${CLAUDE}`) }).textContent()).toMatch(/\$\d/)
    expect(await page.getByRole('img').evaluateAll((charts) => charts.map((each) => each.ariaLabel))).toEqual([
      expect.stringMatching(/^Requests: \d+ in all/),
      expect.stringMatching(/^Tokens out: /),
      expect.stringMatching(/^Known cost, USD: /),
    ])
    await page.getByRole('combobox', { name: 'By' }).selectOption('credential')
    await counted.getByRole('row', { name: /^Local/ }).waitFor()

    await page.getByRole('combobox', { name: 'Show' }).selectOption('error')
    const list = page.getByRole('table', { name: 'Requests' })
    await expect.poll(() => list.locator('tbody > tr').count()).toBe(1)
    await list.getByRole('button').click()
    const whole = page.getByRole('dialog', { name: 'local-broken' })
    await whole
      .getByRole('row', { name: /Local.*transient 500/ })
      .first()
      .waitFor()
    await whole.getByRole('button', { name: 'Prompt and answer' }).click()
    await whole.getByText('Nothing is kept of it').waitFor()
    await page.keyboard.press('Escape')
    const exported = async (): Promise<string> => {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('link', { name: 'Export CSV' }).click(),
      ])
      return readFileSync(await download.path(), 'utf8')
    }
    const shown = await exported()
    expect(shown).toContain('local-broken')
    expect(shown).not.toContain('local-model')
    await page.reload()
    expect(await page.getByRole('combobox', { name: 'By' }).inputValue()).toBe('credential')
    expect(await page.getByRole('combobox', { name: 'Show' }).inputValue()).toBe('error')
    await page.getByRole('combobox', { name: 'Show' }).selectOption('cached')
    await page.getByText('No such request').waitFor()
    await page.getByRole('combobox', { name: 'Show' }).selectOption('')
    await page.locator('#gateway[aria-busy="false"]').waitFor()
    const { usage } = await site.manage('GET', 'usage?model=local-model')
    await page.getByLabel('Request id').fill(usage[0].request_id)
    await page.keyboard.press('Enter')
    await expect.poll(() => list.locator('tbody > tr').count()).toBe(1)
    expect(await list.locator('tbody > tr').textContent()).toContain('local-model')
  })

  test('gateway#111 keys that are called the same have each their own sums', async () => {
    const { page, open, site } = at()
    for (const calls of [1, 2]) {
      const { token } = await site.manage('POST', 'keys', { name: 'twin' })
      for (let i = 0; i < calls; i++) expect(await site.chat('local-model', token)).toBe(200)
    }
    await open('/gateway/usage')
    await page.getByRole('combobox', { name: 'By' }).selectOption('key')
    const twins = page.getByRole('table', { name: 'By group' }).getByRole('row', { name: /^twin \(\d+\)/ })
    await expect
      .poll(async () => {
        await page.getByRole('button', { name: 'Refresh' }).click()
        return Promise.all((await twins.all()).map((row) => row.getByRole('cell').first().textContent()))
      })
      .toEqual(['2', '1'])
  })

  test('gateway#111 long names break, so that what stands beside them is seen', async () => {
    const { page, open, site } = at()
    const [name, model] = ['L'.repeat(100), 'm'.repeat(150)]
    const { id } = await site.manage('POST', 'credentials', { ...site.local.credential, name, allowed_models: [model] })
    expect(await site.chat(model)).toBe(200)
    for (const [section, text] of [
      ['credentials', model],
      ['usage', model],
      ['audit', name],
    ] as const) {
      await open(`/gateway/${section}`)
      await page.getByRole('table').getByText(text).first().waitFor()
      const wide =
        '[...document.querySelectorAll(".scroll, .legend")].filter((each) => each.scrollWidth > each.clientWidth)'
      expect([section, await page.evaluate(`${wide}.length`)]).toEqual([section, 0])
    }
    await site.manage('DELETE', `credentials/${id}`)
  })

  test('gateway#111 the audit is filtered, paged, verified and exported', async () => {
    const { page, open, site } = at()
    const id = await site.credential('Local')
    for (let i = 0; i < 27; i++) {
      await site.manage('POST', `credentials/${id}/disable`)
      await site.manage('POST', `credentials/${id}/enable`)
    }
    await open('/gateway/audit')
    const rows = page.getByRole('table', { name: 'Audit' }).locator('tbody > tr')
    await expect.poll(() => rows.count()).toBe(50)
    const newest = await rows.first().textContent()
    await page.getByRole('button', { name: 'Older' }).click()
    await page.getByRole('button', { name: 'Newer' }).waitFor()
    expect(await rows.first().textContent()).not.toBe(newest)
    await page.getByRole('button', { name: 'Newer' }).click()
    await expect.poll(() => rows.first().textContent()).toBe(newest)
    await page.getByRole('combobox', { name: 'Action' }).selectOption('alias.create')
    await page.getByRole('combobox', { name: 'Who' }).selectOption({ label: 'ada@example.org' })
    await page.getByRole('button', { name: 'Filter' }).click()
    await expect.poll(() => rows.count()).toBe(1)
    expect(await rows.textContent()).toContain('helper')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Export JSONL' }).click(),
    ])
    expect(
      readFileSync(await download.path(), 'utf8')
        .trim()
        .split('\n'),
    ).toHaveLength(1)
    await page.getByLabel('From').fill('2099-01-01T00:00')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByText('Nothing here').waitFor()
    await page.getByRole('button', { name: 'Verify the chain' }).click()
    await page.getByText('The chain is whole').waitFor()
  })

  test('gateway#111 filters of the audit stay where the server refuses them', async () => {
    const { page, open } = at()
    await open('/gateway/audit')
    await page.getByLabel('From').fill('12026-01-01T00:00')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByText('From must be an ISO 8601 time').waitFor()
    await page.reload()
    await page.getByText('From must be an ISO 8601 time').waitFor()
    await page.getByLabel('From').fill('')
    await page.getByRole('button', { name: 'Filter' }).click()
    await page.getByRole('table', { name: 'Audit' }).waitFor()
    expect(await page.getByText('must be an ISO 8601 time').count()).toBe(0)
  })

  test('gateway#111 settings are saved or refused in words; the metrics token is shown once', async () => {
    const { page, open, site } = at()
    await open('/gateway/settings')
    await page.getByLabel('Budget of the organization, USD').fill('100')
    await page.getByLabel('Blocked models').fill('evil-*')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('status').getByText('The settings are saved.').waitFor()
    const budget = { limit_usd: '100', window: 'month', unknown_price: 'deny' }
    expect(await site.manage('GET', 'settings')).toMatchObject({ budget, blocked_models: ['evil-*'] })
    await page.getByLabel('Track what calls cost').uncheck()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('alert').getByText('while there is a budget').waitFor()
    expect(await page.getByText('are saved').count()).toBe(0)
    await page.getByLabel('Track what calls cost').check()
    await page.getByLabel('Budget of the organization, USD').fill('')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('are saved').waitFor()
    expect((await site.manage('GET', 'settings')).budget).toBe(null)
    await page.getByLabel('Look up').fill('claude-opus-4-6')
    await page
      .getByText(/\d in, \d+ out/)
      .first()
      .waitFor()

    await page.getByRole('button', { name: 'Make one' }).click()
    const shown = page.getByRole('dialog', { name: 'The metrics token' })
    expect(await shown.getByLabel('Token').inputValue()).toMatch(/^mmt_[\w-]{43}$/)
    await shown.getByRole('button', { name: 'I have it' }).click()
    await page.getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('The metrics token is revoked.').waitFor()
  })

  test('gateway#111 what another tab changed is not lost: who saves later is told', async () => {
    const { page, open, site } = at()
    const { id } = await site.manage('POST', 'keys', { name: 'Shared' })
    await open('/gateway/keys')
    await site.manage('PUT', `keys/${id}`, { name: 'Shared', allowed_models: ['local-*'] })
    await page.getByRole('button', { name: 'Disable Shared' }).click()
    await page.getByText('Shared is disabled.').waitFor()
    expect(await site.manage('GET', `keys/${id}`)).toMatchObject({ enabled: false, allowed_models: ['local-*'] })
    await page.getByRole('button', { name: 'Edit Shared' }).click()
    const edit = page.getByRole('dialog', { name: 'Edit Shared' })
    expect(await edit.getByLabel('Only these models').inputValue()).toBe('local-*')
    await site.manage('PUT', `keys/${id}`, { name: 'Shared', max_output_tokens: 7 })
    await edit.getByLabel('Requests a minute').fill('60')
    await edit.getByRole('button', { name: 'Save' }).click()
    await edit.getByText('Somebody changed it meanwhile.').waitFor()
    await page.locator('#gateway[aria-busy="false"]').waitFor()
    await edit.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Edit Shared' }).click()
    expect(await edit.getByLabel('Output cap').inputValue()).toBe('7')
    await edit.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Shared is saved.').waitFor()
    await site.manage('DELETE', `keys/${id}`)
  })

  test('gateway#111 a long list is shown in parts, and what is looked for stays found', async () => {
    const { page, open, site } = at()
    const made: { id: number }[] = []
    onTestFinished(async () => {
      for (const { id } of made) await site.manage('DELETE', `keys/${id}`)
    })
    for (let i = 0; i < 102; i++) made.push(await site.manage('POST', 'keys', { name: `many-${i}` }))
    await open('/gateway/keys')
    const rows = page.getByRole('table', { name: 'Keys' }).locator('tbody > tr')
    await expect.poll(() => rows.count()).toBe(100)
    await page.getByRole('button', { name: /^Show \d+ more$/ }).click()
    await expect.poll(() => rows.count()).toBeGreaterThan(101)
    await page.getByRole('searchbox', { name: 'Find in Keys' }).fill('Many-101')
    await expect.poll(() => rows.count()).toBe(1)
    await page.getByRole('button', { name: 'Disable many-101' }).click()
    await page.getByText('many-101 is disabled.').waitFor()
    await expect.poll(() => rows.count()).toBe(1)
  })

  test('gateway#111 what the server finds too much leaves the choices, and what was asked first does not come last', async () => {
    const { page, open, site } = at()
    expect(await site.chat(CLAUDE)).toBe(200)
    let held: (() => void) | undefined
    const holding = new Promise<void>((resolve) => (held = resolve))
    await page.route(/\/analytics\?/, async (route) => {
      const asked = new URL(route.request().url()).searchParams
      if (asked.get('group_by') === 'key') {
        const error = { code: 'invalid_request', message: 'more than 10000 entries', details: { field: 'group_by' } }
        return route.fulfill({ status: 400, json: { error } })
      }
      if (asked.get('group_by') === 'user')
        return route.fulfill({ status: 500, json: { error: { message: 'out of order' } } })
      if (asked.get('group_by') === 'surface') await holding
      return route.continue()
    })
    await open('/gateway/usage')
    const by = page.getByRole('combobox', { name: 'By' })
    await by.selectOption('key')
    await page.getByText('Too many to draw apart').waitFor()
    await page
      .getByRole('table', { name: 'By group' })
      .getByRole('row', { name: /^no key/ })
      .waitFor()
    await by.selectOption('user')
    await page.getByText('out of order').waitFor()
    const early = page.waitForRequest(/group_by=surface/)
    await by.selectOption('surface')
    await early
    await by.selectOption('provider')
    await page
      .getByRole('table', { name: 'By group' })
      .getByRole('row', { name: /^anthropic/ })
      .waitFor()
    const late = page.waitForResponse(/group_by=surface/)
    held?.()
    await late
    await page
      .getByRole('table', { name: 'By group' })
      .getByRole('row', { name: /^anthropic/ })
      .waitFor()
    expect(await page.getByRole('rowheader', { name: 'chat', exact: true }).count()).toBe(0)
  })

  test('gateway#111 who has gone to a field is still there when the page comes anew', async () => {
    const { page, open, site } = at()
    expect(await site.chat(CLAUDE)).toBe(200)
    let id = ''
    await expect
      .poll(async () => (id = (await site.manage('GET', 'usage?limit=1')).usage[0]?.request_id ?? ''))
      .toMatch(/^req_/)
    await open('/gateway/usage')
    const field = page.getByLabel('Request id')
    await field.waitFor()
    let held: (() => void) | undefined
    const holding = new Promise<void>((resolve) => (held = resolve))
    await page.route(/outcome=ok/, async (route) => {
      await holding
      return route.continue()
    })
    await page.getByRole('combobox', { name: 'Show' }).selectOption('ok')
    await field.focus()
    const late = page.waitForResponse(/outcome=ok/)
    held?.()
    await (await late).finished()
    await page.locator('#gateway[aria-busy="false"]').waitFor()
    await page.keyboard.type(id)
    await page.keyboard.press('Enter')
    await expect.poll(() => page.getByRole('table', { name: 'Requests' }).locator('tbody > tr').count()).toBe(1)
    expect(new URL(page.url()).searchParams.get('request_id')).toBe(id)
  })

  test('gateway#111 a session that ends in the middle asks for a sign-in, and the work goes on', async () => {
    const { page, open, site } = at()
    await open('/gateway/keys')
    await page.getByRole('button', { name: 'Add a key' }).click()
    const form = page.getByRole('dialog', { name: 'Add a key' })
    await form.getByLabel('Name', { exact: true }).fill('Patient')
    await page.context().clearCookies()
    await form.getByRole('button', { name: 'Add' }).click()
    const dialog = page.getByRole('dialog', { name: 'Your session has ended' })
    expect(await dialog.getByLabel('E-mail').inputValue()).toBe('ada@example.org')
    await dialog.getByLabel('Password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'The key Patient' }).getByRole('button', { name: 'I have it' }).click()
    const { keys } = await site.manage('GET', 'keys')
    expect(keys.filter(({ name }: { name: string }) => name === 'Patient')).toHaveLength(1)

    await page.getByRole('button', { name: 'Delete Patient' }).click()
    await page.context().clearCookies()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await dialog.getByLabel('E-mail').fill(MEMBER)
    await dialog.getByLabel('Password').fill(PASSWORD)
    await page.keyboard.press('Enter')
    // Another person does not end what this one began.
    await page.locator('#who').getByText(MEMBER).waitFor()
    expect((await site.manage('GET', 'keys')).keys).toHaveLength(keys.length)
  })

  test('gateway#111 a member sees what is shared, and only actions that are a member’s', async () => {
    const { page, open, site } = at()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signIn(at(), MEMBER)
    await page.getByRole('row', { name: 'Claude' }).first().waitFor()
    expect(await page.getByRole('table').getByRole('button').count()).toBe(0)
    expect(await page.getByRole('link', { name: 'Audit' }).count()).toBe(0)
    await page.getByRole('button', { name: 'Add a credential' }).click()
    const form = page.getByRole('dialog', { name: 'Add a credential' })
    await form.getByText('Private: only you see and use it.').waitFor()
    await form.getByRole('combobox', { name: 'Provider' }).selectOption('openai-compatible')
    await form.getByLabel('Name', { exact: true }).fill('Of Bob')
    await form.getByLabel('Base URL').fill(`${site.local.url}/v1`)
    await form.getByRole('button', { name: 'Add' }).click()
    await page.getByRole('row', { name: /Of Bob.*private/ }).waitFor()
    await expect.poll(() => page.getByRole('table').getByRole('button').count()).toBe(4)
    await open('/gateway/models')
    await page.getByRole('row', { name: 'helper' }).waitFor()
    expect(await page.getByRole('button', { name: 'Edit helper' }).count()).toBe(0)
    await open('/gateway/keys')
    await page.getByText('Ask an admin for one.').waitFor()
    await open('/gateway/audit')
    await page.getByText('for admins of the organization').waitFor()
    await open('/gateway/settings')
    await page.getByText('Admins of the organization change these.').waitFor()
    expect(await page.getByRole('button', { name: /Save|Make one/ }).count()).toBe(0)
    expect(await page.getByLabel('Usage records').isDisabled()).toBe(true)
    await open('/gateway/usage')
    await page.getByText('No such request').waitFor()
  })
})
