import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createApp } from '../../src/app.ts'
import { createPlace, initialize, type Place } from '../platform/support.ts'

const SECTIONS = ['credentials', 'models', 'playground', 'usage', 'keys', 'audit', 'settings']

describe('the pages of a gateway that runs alone', () => {
  let place: Place
  let app: Awaited<ReturnType<typeof createApp>>
  let url = ''
  beforeAll(async () => {
    place = await createPlace('sqlite')
    await initialize(place)
    app = await createApp(place.config(), { services: ['platform', 'gateway'] })
    url = await app.listen()
  })
  afterAll(async () => {
    await app.close()
    await place.remove()
  })

  test('gateway#111 every page and what it loads is there, without data and under a strict policy', async () => {
    for (const section of SECTIONS) {
      const page = await fetch(`${url}/ui/gateway/${section}`)
      expect([section, page.status]).toEqual([section, 200])
      expect(page.headers.get('content-security-policy')).toMatch(/default-src 'none'; script-src 'self'/)
      const text = await page.text()
      expect(text).not.toContain('/ui/workspaces')
      const files = [...text.matchAll(/(?:src|href)="(\/ui\/static\/[^"]+)"/g)].map(([, path]) => path ?? '')
      expect(files).toContain(`/ui/static/gateway-${section}.js`)
      for (const path of files) expect([path, (await fetch(url + path)).status]).toEqual([path, 200])
    }
  })

  test('gateway#111 scripts find what they import', async () => {
    const seen = new Set<string>()
    const follow = async (file: string): Promise<void> => {
      if (seen.has(file)) return
      seen.add(file)
      const answer = await fetch(`${url}/ui/static/${file}`)
      expect([file, answer.status, answer.headers.get('content-type')]).toEqual([
        file,
        200,
        'text/javascript; charset=utf-8',
      ])
      for (const [, next = ''] of (await answer.text()).matchAll(/from '\.\/([\w-]+\.js)'/g)) await follow(next)
    }
    for (const section of SECTIONS) await follow(`gateway-${section}.js`)
    expect(seen.size).toBeGreaterThan(SECTIONS.length)
  })

  test('the root leads to the gateway', async () => {
    for (const path of ['/ui/', '/ui/gateway/']) {
      const answer = await fetch(url + path, { redirect: 'manual' })
      expect([answer.status, answer.headers.get('location')]).toEqual([303, '/ui/gateway/credentials'])
    }
  })

  test('gateway#111 what is not there is a page that leads back, and no fault of the server', async () => {
    for (const path of ['/ui/nowhere', '/ui/gateway/nowhere', '/ui/gateway/keys/', '/ui/static/nothing.js']) {
      const answer = await fetch(url + path)
      expect([path, answer.status, answer.headers.get('content-type')]).toEqual([path, 404, 'text/html; charset=utf-8'])
      expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'")
      expect(await answer.text()).toContain('<a class="button" href="/ui/gateway/credentials">Credentials</a>')
    }
    expect((await fetch(`${url}/ui/gateway/keys`, { method: 'POST' })).status).toBe(404)
  })
})
