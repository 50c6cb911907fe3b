import fc from 'fast-check'
import { expect, test } from 'vitest'
import { addOrganization, describePlatform, expectError, expectOk, PASSWORD, type Reply } from './support.ts'

const UUID_LIKE = ['0', '-1', '1e3', '01', 'x', '9999999999999999999', '%20', '1.0']

describePlatform('users and flags', (api) => {
  test('users: 201, lower-cased e-mail, defaults; bad fields are 400, a taken e-mail is 409', async () => {
    const created = await api().call('POST', '/users', {
      email: 'Bo@Example.ORG',
      password: PASSWORD,
      display_name: 'Bo',
    })
    const bo = expectOk(created, 201)
    expect(bo).toEqual({
      id: expect.any(Number),
      organization_id: 1,
      email: 'bo@example.org',
      display_name: 'Bo',
      role: 'member',
      active: true,
    })
    const valid = { email: 'cy@example.org', password: PASSWORD }
    const bad: [string, unknown][] = [
      ['email', undefined],
      ['email', 'nobody'],
      ['email', 'a b@c'],
      ['email', `${'x'.repeat(250)}@b.cd`],
      ['password', undefined],
      ['password', 'eleven char'],
      ['password', 1],
      ['role', 'owner'],
      ['active', 'yes'],
      ['display_name', 'x'.repeat(201)],
      ['id', 7],
    ]
    for (const [field, value] of bad) {
      expectError(await api().call('POST', '/users', { ...valid, [field]: value }), 400, 'invalid_request', { field })
    }
    const taken = await api().call('POST', '/users', { ...valid, email: 'BO@example.org' })
    expectError(taken, 409, 'conflict', { reason: 'email_taken' })
    expectError(await api().call('PATCH', `/users/${bo.id}`, { email: 'ada@example.org' }), 409, 'conflict')
    const cleared = expectOk(
      await api().call('PATCH', `/users/${bo.id}`, { display_name: '', email: 'bob@example.org' }),
    )
    expect(cleared).toEqual({ id: bo.id, organization_id: 1, email: 'bob@example.org', role: 'member', active: true })
    expect(expectOk(await api().call('PATCH', `/users/${bo.id}`, {}))).toEqual(cleared)
    for (const id of [...UUID_LIKE, '99999']) {
      expectError(await api().call('PATCH', `/users/${id}`, {}), 404, 'not_found', { resource: 'user' })
    }
  })

  test('the last active admin stays, also when two step down at once', async () => {
    for (const changes of [{ active: false }, { role: 'member' }]) {
      expectError(await api().call('PATCH', '/users/1', changes), 409, 'conflict', { reason: 'last_admin' })
    }
    const { id } = await api().user('second@example.org', { role: 'admin' })
    const stepDown = (user: number): Promise<Reply> => api().call('PATCH', `/users/${user}`, { role: 'member' })
    const statuses = (await Promise.all([stepDown(1), stepDown(id)])).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    const token = await api().login('second@example.org')
    await api().call('PATCH', '/users/1', { role: 'admin' }, { token })
    expectOk(await api().call('PATCH', '/users/1', { role: 'admin' }))
    expectOk(await api().call('PATCH', `/users/${id}`, { role: 'member' }))
  })

  test('flags are off until an admin turns them on, for this organization', async () => {
    const { token } = await api().user('flags@example.org')
    const off = { flags: [{ name: 'feature_git_host', enabled: false }] }
    expect(expectOk(await api().call('GET', '/feature-flags', undefined, { token }))).toEqual(off)
    const set = (enabled: unknown, options = {}): Promise<Reply> =>
      api().call('PUT', '/feature-flags/feature_git_host', { enabled }, options)
    expectError(await set(true, { token }), 403, 'forbidden', { permission: 'admin' })
    expectError(await set('yes'), 400, 'invalid_request', { field: 'enabled' })
    expect(expectOk(await set(true))).toEqual({ name: 'feature_git_host', enabled: true })
    expectError(await api().call('PUT', '/feature-flags/toString', { enabled: true }), 404, 'not_found')
    await addOrganization(api().place, 'flags')
    const other = await api().login('flags@example.net')
    expect(expectOk(await api().call('GET', '/feature-flags', undefined, { token: other }))).toEqual(off)
    expectOk(await set(false))
  })
})

describePlatform('projects', (api) => {
  test('projects: name unique in the organization, source_control set and cleared', async () => {
    const manager = ['project:read', 'project:write', 'project:settings']
    const made = expectOk(await api().call('POST', '/projects', { name: 'site' }), 201)
    expect(made).toEqual({ id: expect.any(Number), name: 'site', permissions: manager })
    expectError(await api().call('POST', '/projects', { name: 'site' }), 409, 'conflict', { reason: 'name_taken' })
    const twins = await Promise.all(Array.from({ length: 4 }, () => api().call('POST', '/projects', { name: 'twin' })))
    expect(twins.map(({ status }) => status).sort((a, b) => a - b)).toEqual([201, 409, 409, 409])
    const change = (body: unknown): Promise<Reply> => api().call('PATCH', `/projects/${made.id}`, body)
    expectError(await change({ name: 'twin' }), 409, 'conflict', { reason: 'name_taken' })
    expect(expectOk(await change({ name: 'site', source_control: 'external' }))).toMatchObject({
      source_control: 'external',
    })
    expect(expectOk(await change({ name: 'page' }))).toEqual({ ...made, name: 'page', source_control: 'external' })
    expect(expectOk(await change({ source_control: null }))).toEqual({ ...made, name: 'page' })
    for (const source_control of ['git_host', '', 1]) {
      expectError(await change({ source_control }), 400, 'invalid_request', { field: 'source_control' })
    }
    expectError(await change({ id: 1 }), 400, 'invalid_request', { field: 'id' })
  })

  test('git-host#12 with linked repositories, another source control is 409', async () => {
    const id = await api().project('linked')
    const database = api().place.open()
    await database.run(`UPDATE platform_projects SET source_control = 'git_host' WHERE id = $1`, [id])
    await database.close()
    for (const source_control of ['external', null]) {
      expectError(await api().call('PATCH', `/projects/${id}`, { source_control }), 409, 'provider_conflict')
    }
    expect(expectOk(await api().call('PATCH', `/projects/${id}`, { name: 'links' }))).toMatchObject({
      name: 'links',
      source_control: 'git_host',
    })
  })

  test('git-host#7 a reader writing is 403; who is no member, and another organization, 404 on every route', async () => {
    const project = await api().project('guarded')
    const P = `/projects/${project}`
    const { sid } = expectOk(await api().call('POST', `${P}/sessions`, {}), 201)
    const { id: item } = expectOk(await api().call('POST', `${P}/work-items`, { type: 'issue', title: 'x' }), 201)
    const [reader, developer, stranger] = await Promise.all(
      ['reader', 'developer', 'stranger'].map((name) => api().user(`${name}@example.org`)),
    )
    if (!reader || !developer || !stranger) throw new Error('three users were made')
    for (const [role, { id }] of Object.entries({ reader, developer })) {
      expectOk(await api().call('PUT', `${P}/members/${id}`, { role }), 201)
    }
    await addOrganization(api().place, 'orion')
    const foreign = { token: await api().login('orion@example.net') }

    const reading: [string, string][] = [
      ['GET', P],
      ['GET', `${P}/members`],
      ['GET', `${P}/work-items`],
      ['GET', `${P}/work-items/${item}`],
      ['GET', `${P}/sessions`],
    ]
    const writing: [string, string, unknown][] = [
      ['POST', `${P}/work-items`, { type: 'issue', title: 'y' }],
      ['PATCH', `${P}/work-items/${item}`, {}],
      ['POST', `${P}/sessions`, {}],
      ['PATCH', `${P}/sessions/${sid}`, { status: 'active' }],
    ]
    const settings: [string, string, unknown][] = [
      ['PATCH', P, {}],
      ['PUT', `${P}/members/${stranger.id}`, { role: 'owner' }],
      ['DELETE', `${P}/members/${stranger.id}`, undefined],
    ]
    const admins: [string, string, unknown][] = [
      ['GET', '/users', undefined],
      ['POST', '/users', {}],
      ['PATCH', '/users/1', {}],
      ['PUT', '/feature-flags/feature_git_host', {}],
      ['POST', '/projects', {}],
    ]
    for (const [method, path, body] of [...reading, ...writing, ...settings]) {
      for (const options of [{ token: stranger.token }, foreign]) {
        expectError(await api().call(method, path, body, options), 404, 'not_found', {
          resource: 'project',
          id: project,
        })
      }
    }
    for (const [method, path] of reading) expectOk(await api().call(method, path, undefined, { token: reader.token }))
    for (const [method, path, body] of writing) {
      const refused = await api().call(method, path, body, { token: reader.token })
      expectError(refused, 403, 'forbidden', { permission: 'project:write' })
      expect((await api().call(method, path, body, { token: developer.token })).status).toBeLessThan(300)
    }
    for (const [method, path, body] of settings) {
      const refused = await api().call(method, path, body, { token: developer.token })
      expectError(refused, 403, 'forbidden', { permission: 'project:settings' })
    }
    for (const [method, path, body] of admins) {
      const refused = await api().call(method, path, body, { token: developer.token })
      expectError(refused, 403, 'forbidden', { permission: 'admin' })
    }
    for (const [method, path] of [
      ['PATCH', '/users/9999'],
      ['PUT', '/feature-flags/none'],
      ['PATCH', `${P}/work-items/9999`],
      ['PATCH', `${P}/sessions/9999`],
    ] as const) {
      expectError(await api().call(method, path, { wrong: true }), 404, 'not_found')
    }
    const own = expectOk(await api().call('GET', '/projects', undefined, { token: reader.token })).projects
    expect(own).toEqual([{ id: project, name: 'guarded', permissions: ['project:read'] }])
    expect(expectOk(await api().call('GET', '/projects', undefined, foreign)).projects).toEqual([])
  })

  test('members: added, changed, listed, removed; users of another organization are 404', async () => {
    const P = `/projects/${await api().project('team')}`
    const { id, token } = await api().user('team@example.org')
    const put = (user: number | string, role: unknown): Promise<Reply> =>
      api().call('PUT', `${P}/members/${user}`, { role })
    expect(expectOk(await put(id, 'reader'), 201)).toEqual({ user_id: id, role: 'reader' })
    expect(expectOk(await put(id, 'manager'))).toEqual({ user_id: id, role: 'manager' })
    expectOk(await api().call('PATCH', P, { name: 'squad' }, { token }))
    expect(expectOk(await api().call('GET', `${P}/members`))).toEqual({
      members: [{ user_id: id, role: 'manager' }],
      next_after_id: '',
    })
    expectError(await put(id, 'owner'), 400, 'invalid_request', { field: 'role' })
    await addOrganization(api().place, 'vega')
    const { user } = expectOk(
      await api().call('GET', '/me', undefined, { token: await api().login('vega@example.net') }),
    )
    for (const other of [user.id, 99_999, 'x'])
      expectError(await put(other, 'reader'), 404, 'not_found', { resource: 'user' })
    expectOk(await api().call('DELETE', `${P}/members/${id}`), 204)
    expectError(await api().call('DELETE', `${P}/members/${id}`), 404, 'not_found', { resource: 'member' })
    expectError(await api().call('GET', P, undefined, { token }), 404, 'not_found')
  })

  test('work items: done sets completed_at once, taking up again clears it', async () => {
    const P = `/projects/${await api().project('work')}`
    const items = `${P}/work-items`
    const { session_id } = expectOk(await api().call('POST', `${P}/sessions`, { kind: 'repair' }), 201)
    const made = expectOk(
      await api().call('POST', items, { type: 'feature', title: '🔦 lamp', branch: 'lamp', session_id }),
      201,
    )
    expect(made).toEqual({
      id: expect.any(Number),
      type: 'feature',
      title: '🔦 lamp',
      status: 'todo',
      branch: 'lamp',
      session_id,
    })
    const change = (body: unknown): Promise<Reply> => api().call('PATCH', `${items}/${made.id}`, body)
    const done = expectOk(await change({ status: 'done' }))
    expect(done.completed_at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    api().advance(1000)
    expect(expectOk(await change({ status: 'done', title: 'lamp' }))).toEqual({ ...done, title: 'lamp' })
    const again = expectOk(await change({ status: 'in_progress', branch: '', session_id: null }))
    expect(again).toEqual({ id: made.id, type: 'feature', title: 'lamp', status: 'in_progress' })
    expect(expectOk(await api().call('GET', `${items}/${made.id}`))).toEqual(again)

    const bad: [string, unknown][] = [
      ['type', 'epic'],
      ['type', null],
      ['title', ''],
      ['title', 'x'.repeat(501)],
      ['status', 'open'],
      ['repository_link_id', '1'],
      ['repository_link_id', 0],
      ['repository_link_id', 1.5],
      ['completed_at', '2026-01-01T00:00:00.000Z'],
    ]
    for (const [field, value] of bad) {
      expectError(await change({ [field]: value }), 400, 'invalid_request', { field })
      const body = { type: 'issue', title: 'x', [field]: value }
      expectError(await api().call('POST', items, body), 400, 'invalid_request', { field })
    }
    expectError(await api().call('POST', items, { type: 'issue' }), 400, 'invalid_request', { field: 'title' })
    const P2 = `/projects/${await api().project('elsewhere')}`
    const foreign = expectOk(await api().call('POST', `${P2}/sessions`, {}), 201).session_id
    expectError(await change({ session_id: foreign }), 404, 'not_found', { resource: 'session', id: foreign })
    expectError(await change({ repository_link_id: 1 }), 404, 'not_found', { resource: 'repository_link', id: 1 })
    expectError(await api().call('GET', `${P2}/work-items/${made.id}`), 404, 'not_found', { resource: 'work_item' })
    for (const id of [...UUID_LIKE, '99999']) expectError(await api().call('GET', `${items}/${id}`), 404, 'not_found')
  })

  test('agent sessions: registered for the caller, closed and opened', async () => {
    const P = `/projects/${await api().project('agents')}`
    const { id, token } = await api().user('agent@example.org')
    expectOk(await api().call('PUT', `${P}/members/${id}`, { role: 'developer' }), 201)
    const { id: item } = expectOk(await api().call('POST', `${P}/work-items`, { type: 'issue', title: 'x' }), 201)
    const made = expectOk(
      await api().call('POST', `${P}/sessions`, { branch: 'fix', work_item_id: item }, { token }),
      201,
    )
    expect(made).toEqual({
      sid: expect.any(Number),
      session_id: expect.stringMatching(/^session-[0-9A-HJKMNP-TV-Z]{26}$/),
      user_id: id,
      kind: 'work',
      branch: 'fix',
      work_item_id: item,
      status: 'active',
    })
    const closed = expectOk(await api().call('PATCH', `${P}/sessions/${made.sid}`, { status: 'closed' }, { token }))
    expect(closed).toEqual({ ...made, status: 'closed' })
    expect(expectOk(await api().call('GET', `${P}/sessions`))).toEqual({ sessions: [closed], next_after_id: '' })
    for (const body of [{ kind: 'x' }, { work_item_id: 'x' }, { user_id: 1 }]) {
      expectError(await api().call('POST', `${P}/sessions`, body), 400, 'invalid_request', {
        field: Object.keys(body)[0],
      })
    }
    for (const body of [{ work_item_id: 99_999 }, { repository_link_id: 1 }]) {
      expectError(await api().call('POST', `${P}/sessions`, body), 404, 'not_found')
    }
    expectError(await api().call('PATCH', `${P}/sessions/${made.sid}`, {}), 400, 'invalid_request', { field: 'status' })
    expectError(await api().call('PATCH', `${P}/sessions/99999`, { status: 'closed' }), 404, 'not_found')
  })

  test('git-host#8 paging: no repeats, nothing hidden, next_after_id empty at the end, whatever is written meanwhile', async () => {
    const P = `/projects/${await api().project('pages')}`
    const add = async (): Promise<number> =>
      expectOk(await api().call('POST', `${P}/work-items`, { type: 'issue', title: 'page' }), 201).id
    const made: number[] = []
    for (let i = 0; i < 7; i++) made.push(await add())
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 8 }),
        fc.array(fc.boolean(), { maxLength: 8 }),
        async (limit, writes) => {
          const before = [...made]
          const seen: number[] = []
          for (let after = '', page = 0; ; page++) {
            const answer = expectOk(await api().call('GET', `${P}/work-items?limit=${limit}&after_id=${after}`))
            expect(Object.keys(answer)).toEqual(['work_items', 'next_after_id'])
            seen.push(...answer.work_items.map(({ id }: { id: number }) => id))
            after = answer.next_after_id
            if (after === '') break
            expect(answer.work_items).toHaveLength(limit)
            if (writes[page]) made.push(await add())
          }
          expect(seen).toEqual(made.slice(0, seen.length))
          expect(seen.slice(0, before.length)).toEqual(before)
        },
      ),
      { numRuns: 12 },
    )
    for (const query of ['limit=0', 'limit=201', 'limit=x', 'limit=-1', 'after_id=x', 'after_id=-1', 'after_id=1.5']) {
      const [field] = query.split('=', 1)
      expectError(await api().call('GET', `${P}/work-items?${query}`), 400, 'invalid_request', { field })
    }
    expectOk(await api().call('GET', `${P}/work-items?limit=200`))
  })
})
