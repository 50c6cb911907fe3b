import { expect, test } from 'vitest'
import { describeOnBoth } from '../support/memory-api.ts'
import { createClient } from './console-client.ts'

const SCRIPT = `<script>alert('x')</script>"'><img src=x onerror=alert(1)>`

describeOnBoth('pages', (api) => {
  const get = (path: string) => createClient(api().url).get(path)

  test('memory#153 each page renders, and a stored <script> is inert on all of them', async () => {
    const call = api().call
    const ws = await api().workspace({ name: SCRIPT, region: '<b>region</b>', meta: { note: SCRIPT } })
    const collection = (await call('POST', `/workspaces/${ws}/collections`, { name: SCRIPT })).body.id
    const mem = await api().imprint(ws, `${SCRIPT}\nsecond line`, {
      tags: { [SCRIPT]: SCRIPT },
      collection_id: collection,
    })
    const other = await api().imprint(ws, `another ${SCRIPT}`)
    await call('POST', `/workspaces/${ws}/memories/${mem}/edges`, {
      target_memory_id: other,
      edge_type: 'references',
      properties_json: { note: SCRIPT },
    })
    await call('POST', `/workspaces/${ws}/memories/${mem}:append`, { content: SCRIPT }, { agent: `agent_${SCRIPT}` })
    await call('POST', `/workspaces/${ws}/recall/pins`, { query: SCRIPT, label: SCRIPT })
    await call('POST', `/workspaces/${ws}/agents`, {
      agent_id: `agent_${SCRIPT}`,
      identity_provider: 'opaque',
      display_name: SCRIPT,
    })
    const first = (await call('GET', `/workspaces/${ws}/memories/${mem}/watermarks`)).body.watermarks.at(-1).watermark
    const W = `/ui/workspaces/${ws}`
    const pages = [
      '/ui/',
      '/ui/workspaces',
      W,
      `${W}?q=${encodeURIComponent(`alert ${SCRIPT}`)}&depth=1`,
      `${W}?tab=collections`,
      `${W}?tab=agents`,
      `${W}?tab=bulk`,
      `${W}?tab=settings`,
      `${W}/memories`,
      `${W}/memories?collection=${collection}`,
      `${W}/memories/${mem}`,
      `${W}/memories/${mem}?tab=content`,
      `${W}/memories/${mem}?tab=cells`,
      `${W}/memories/${mem}?tab=edges&depth=2`,
      `${W}/memories/${mem}?tab=history`,
      `${W}/memories/${mem}?tab=history&from=${first}`,
      `${W}/graph`,
      `${W}/graph?seed=${mem}&depth=2`,
      '/ui/audit',
      `/ui/audit?ws=${ws}&agent=${encodeURIComponent(`agent_${SCRIPT}`)}&ops=append`,
      `/ui/audit?target=${encodeURIComponent(SCRIPT)}`,
      '/ui/settings',
    ]
    for (const path of pages) {
      const { status, headers, text } = await get(path)
      expect([path, status]).toEqual([path, 200])
      expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect([path, text.includes('<script>'), text.includes('<img src=x')]).toEqual([path, false, false])
      expect(text.length).toBeLessThan(200_000)
    }
    expect((await get(`${W}/memories/${mem}`)).text).toContain('&lt;script&gt;alert(')
  })

  test('a name cannot turn what stands around it, nor hide behind control characters', async () => {
    const ws = await api().workspace({ name: 'safe\u202egnp.exe', region: 'x\u2066y' })
    await api().call('POST', `/workspaces/${ws}/collections`, { name: 'bell\u0007' })
    for (const path of ['/ui/', '/ui/workspaces', `/ui/workspaces/${ws}?tab=collections`, '/ui/audit']) {
      const { text } = await get(path)
      expect([path, ['\u202e', '\u2066', '\u0007'].some((character) => text.includes(character))]).toEqual([
        path,
        false,
      ])
    }
    expect((await get('/ui/workspaces')).text).toContain('safe\\u202egnp.exe')
  })

  test('a Memory of one version has nothing to compare', async () => {
    const ws = await api().workspace()
    const mem = await api().imprint(ws, 'once')
    const history = async () => (await get(`/ui/workspaces/${ws}/memories/${mem}?tab=history`)).text
    expect(await history()).not.toContain('Compare')
    await api().call('POST', `/workspaces/${ws}/memories/${mem}:append`, { content: ' more' })
    expect(await history()).toContain('Compare')
  })

  test('pages forbid inline script and style, and frames around them', async () => {
    const { headers, text } = await get('/ui/')
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).toContain("default-src 'none'")
    expect(policy).toContain("frame-ancestors 'none'")
    expect(policy).not.toContain('unsafe')
    expect(text).not.toMatch(/ style=| onclick=|<style|<script>/)
    expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//)
  })

  test('an unknown path, workspace or Memory is an HTML 404', async () => {
    const ws = await api().workspace()
    for (const path of [
      '/ui/nope',
      '/ui/workspaces/ws_nope',
      `/ui/workspaces/${ws}/memories/mem_nope`,
      '/ui/static/nope.js',
      '/ui/static/..%2flayout.eta',
      '/ui/audit?ws=ws_nope',
    ]) {
      const { status, headers } = await get(path)
      expect([path, status, headers.get('content-type')]).toEqual([path, 404, 'text/html; charset=utf-8'])
    }
    expect((await get('/ui/workspaces?cursor=bad')).status).toBe(400)
    expect((await get('/ui/audit?since=yesterday')).status).toBe(400)
    expect((await get('/ui/audit?ops=dance')).status).toBe(400)
  })

  test('lists go on by cursor and show every row once', async () => {
    const ws = await api().workspace()
    const ids = await Promise.all(Array.from({ length: 60 }, (_, i) => api().imprint(ws, `note ${i}`)))
    const seen: string[] = []
    let path: string | undefined = `/ui/workspaces/${ws}/memories`
    while (path !== undefined) {
      const { text } = await get(path)
      seen.push(...[...text.matchAll(/<th scope="row"><a href="[^"]*\/(mem_[^"]+)"/g)].map(([, id]) => id ?? ''))
      path = /<a class="button" href="([^"]+)" rel="next"/.exec(text)?.[1]?.replaceAll('&amp;', '&')
    }
    expect(seen.toSorted()).toEqual(ids.toSorted())
  })

  test('recall shows the scores of each signal and why a hit stands where it stands', async () => {
    const ws = await api().workspace()
    await api().imprint(ws, 'The keeper of the lighthouse likes rye bread.')
    await api().imprint(ws, 'Bread is baked on Tuesdays.')
    const { text } = await get(`/ui/workspaces/${ws}?q=lighthouse+bread&mode=hybrid`)
    expect(text).toContain('1st by words, 1st by meaning.')
    expect(text).toContain('<mark>lighthouse</mark>')
    expect(text).toMatch(/Words <span class="hint">BM25/)
    expect(text).toMatch(/Meaning <span class="hint">cosine/)
    const untold = await get(`/ui/workspaces/${ws}?q=x&tag=food`)
    expect([untold.status, untold.text.includes('tag must be key=value')]).toEqual([200, true])
    const refused = await get(`/ui/workspaces/${ws}?q=x&mode=sideways`)
    expect([refused.status, refused.text.includes('mode must be one of')]).toEqual([200, true])
  })

  test('a long content is shown in part, and whole as a file', async () => {
    const ws = await api().workspace()
    const content = 'The tide comes and goes. '.repeat(20_000)
    const mem = await api().imprint(ws, content)
    const page = await get(`/ui/workspaces/${ws}/memories/${mem}`)
    expect(page.text.length).toBeLessThan(200_000)
    expect(page.text).toContain('Only the beginning is shown')
    const cells = await get(`/ui/workspaces/${ws}/memories/${mem}?tab=cells`)
    expect(cells.text.length).toBeLessThan(200_000)
    const file = await get(`/ui/workspaces/${ws}/memories/${mem}/content`)
    expect([file.text, file.headers.get('content-type')]).toEqual([content, 'text/plain; charset=utf-8'])
  })

  test('the graph as data, and as REST gives it', async () => {
    const { call } = api()
    const ws = await api().workspace()
    const [a, b, c] = [await api().imprint(ws, 'a'), await api().imprint(ws, 'b'), await api().imprint(ws, 'c')]
    const link = (source: string, target: string) =>
      call('POST', `/workspaces/${ws}/memories/${source}/edges`, { target_memory_id: target, edge_type: 'references' })
    const edge = (await link(a, b)).body.edge.edge_id
    await link(b, c)
    const json = async (path: string): Promise<unknown> => JSON.parse((await get(path)).text)
    expect(await json(`/ui/api/graph/data?ws=${ws}&seed=${a}&depth=1`)).toMatchObject({
      nodes: [
        { id: a, label: 'a', type: 'seed' },
        { id: b, label: 'b', type: 'memory' },
      ],
      edges: [{ id: edge, source: a, target: b, label: 'references' }],
      node_count: 3,
      edge_count_by_type: { references: 2 },
    })
    const whole = await json(`/ui/api/graph/data?ws=${ws}`)
    expect(whole).toMatchObject({ node_count: 3 })
    expect(await json(`/ui/api/graph/stats?ws=${ws}`)).toEqual({ node_count: 3, edge_count_by_type: { references: 2 } })
    expect(await json(`/ui/api/graph/neighbors?ws=${ws}&memory_id=${b}&direction=in`)).toMatchObject({
      edges: [{ edge_id: edge }],
    })
    expect(await json(`/ui/api/graph/traverse?ws=${ws}&seed=${a}&depth=2`)).toMatchObject({
      stats: { nodes_visited: 3 },
    })
    expect((await get(`/ui/api/graph/data?ws=${ws}&seed=mem_nope`)).status).toBe(404)
    expect((await get(`/ui/api/graph/data?ws=${ws}&seed=${a}&depth=9`)).status).toBe(400)
    expect((await get('/ui/api/graph/data')).status).toBe(400)
  })

  test('the audit shows whether the chain is whole', async () => {
    const ws = await api().workspace()
    const page = await get(`/ui/audit?ws=${ws}`)
    expect(page.text).toContain('Verify the chain')
    const { status, text } = await get(`/ui/api/audit/verify?ws=${ws}`)
    expect([status, text.includes('The chain is whole')]).toEqual([200, true])
  })

  test('static files come compressed, and not again while unchanged', async () => {
    const { status, headers } = await get('/ui/static/htmx.js')
    expect([status, headers.get('content-encoding')]).toEqual([200, 'gzip'])
    const again = await get('/ui/static/htmx.js')
    const etag = again.headers.get('etag') ?? ''
    expect((await createClient(api().url).get('/ui/static/htmx.js', { 'if-none-match': etag })).status).toBe(304)
  })
})
