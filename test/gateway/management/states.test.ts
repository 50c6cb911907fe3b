import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { withPlatform } from '../../../src/app/platform.ts'
import { sha256 } from '../../../src/base/hash.ts'
import type { Database } from '../../../src/database/database.ts'
import { CredentialHealth } from '../../../src/gateway/credential-health.ts'
import type { OrganizationState } from '../../../src/gateway/state/organization-state.ts'
import { States } from '../../../src/gateway/state/states.ts'
import { CHEAP, describeInPlaces, expectError, expectOk, initialize, PASSWORD } from '../../platform/support.ts'
import { fragile, LOG } from '../metering/support.ts'
import { describeGateway, startGateway, type GatewayApi } from '../support.ts'

const body = (name: string, fields: object = {}): object => ({
  provider: 'openai',
  name,
  api_key: 'sk-test-0123456789abcdef',
  ...fields,
})

/** The next state that fulfils the condition; rejects when it takes longer than a change may. */
function nextState(states: States, condition: (state: OrganizationState) => boolean): Promise<number> {
  const begun = performance.now()
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('no such state within 5 s')), 5000)
    states.onChange((state) => {
      if (!condition(state)) return
      clearTimeout(timer)
      resolve(performance.now() - begun)
    })
  })
}

describeInPlaces('two processes', (place) => {
  let servers: { one: GatewayApi; two: GatewayApi } | undefined
  const both = (): { one: GatewayApi; two: GatewayApi } => {
    if (!servers) throw new Error('the servers are not up yet')
    return servers
  }
  beforeAll(async () => {
    await initialize(place())
    servers = { one: await startGateway(place()), two: await startGateway(place()) }
  })
  afterAll(async () => {
    await servers?.one.stop()
    await servers?.two.stop()
  })

  test('gateway#46 a change in one is seen by the other within 2 s', async () => {
    const { one, two } = both()
    const { states } = two.management
    const seen = nextState(states, ({ credentials }) => credentials.some(({ name }) => name === 'far'))
    const { id } = expectOk(await one.call('POST', '/credentials', body('far')), 201)
    expect(await seen).toBeLessThan(2000)
    const disabled = nextState(states, ({ credentials }) => credentials.some((each) => each.id === id && !each.enabled))
    expectOk(await one.call('POST', `/credentials/${id}/disable`))
    expect(await disabled).toBeLessThan(2000)
    const keyed = nextState(states, ({ keys }) => keys.length === 1)
    const { token } = expectOk(await one.call('POST', '/keys', { name: 'k' }), 201)
    expect(await keyed).toBeLessThan(2000)
    expect(states.findKey(sha256(token))).toBeDefined()
  })

  test('gateway#46 so are users who leave, and organizations that come', async () => {
    const { one, two } = both()
    const { states } = two.management
    const user = await one.user('leaving@example.org')
    const { token } = expectOk(await one.call('POST', '/keys', { name: 'theirs', user_id: user.id }), 201)
    await states.poll()
    expect(states.findKey(sha256(token))?.key.userId).toBe(user.id)
    const gone = nextState(states, ({ users }) => !users.has(user.id))
    expectOk(await one.call('PATCH', `//rest/v1/platform/users/${user.id}`, { active: false }))
    expect(await gone).toBeLessThan(2000)
    expect(states.findKey(sha256(token))).toBeUndefined()
    const came = nextState(states, ({ id }) => id === 2)
    await withPlatform(place().config(), { upgrade: false, scrypt: CHEAP }, ({ organizations }) =>
      organizations.add({ organization: 'New', email: 'new@example.net', password: PASSWORD }),
    )
    await came
    expect(states.get(2)?.users.size).toBe(1)
  })

  test('gateway#5 a key that one has deleted is no key for the other at once', async () => {
    const { one, two } = both()
    const { id, token } = expectOk(await one.call('POST', '/keys', { name: 'short' }), 201)
    await two.management.states.poll()
    expectOk(await two.call('GET', '/keys/self', undefined, { token }))
    expectOk(await one.call('DELETE', `/keys/${id}`), 204)
    expectError(await two.call('GET', '/keys/self', undefined, { token }), 401, 'unauthorized')
  })

  test('gateway#14 what was found of a credential before it was mended does not come back when writing it fails', async () => {
    const { one } = both()
    const { id } = expectOk(await one.call('POST', '/credentials', body('mended')), 201)
    const { management, clock } = one
    const database = fragile(one.database)
    const health = new CredentialHealth(database, management.states, clock, LOG)
    health.rejected({ organizationId: 1, id, version: 1 }, clock.now() + 60_000, { code: 'transient', message: 'old' })
    const write = database.transaction.bind(database)
    database.transaction = async () => {
      health.forget(id)
      throw new Error('the database is away')
    }
    await expect(health.flush()).rejects.toThrow('away')
    database.transaction = write
    await health.flush()
    expect(expectOk(await one.call('GET', `/credentials/${id}`)).last_error).toBeUndefined()
  })

  test('gateway#14 what was found of a credential before a good test does not come back behind it', async () => {
    const { one } = both()
    const { id } = expectOk(await one.call('POST', '/credentials', body('tested')), 201)
    const { management, database, clock } = one
    const { health } = management
    const fault = { code: 'upstream_credentials_rejected', message: 'old' }
    health.rejected({ organizationId: 1, id, version: 1 }, clock.now() + 60_000, fault)
    let written: Promise<void> | undefined
    const transaction = database.transaction.bind(database)
    database.transaction = (work) =>
      transaction((tx) => {
        const done = work(tx)
        written ??= health.flush() // waits for what this transaction holds
        return done
      })
    expect(expectOk(await one.call('POST', `/credentials/${id}/test`))).toMatchObject({ ok: true })
    database.transaction = transaction
    await written
    expect(expectOk(await one.call('GET', `/credentials/${id}`)).last_error).toBeUndefined()
  })

  test('changes of both at once all hold, and their audit is one chain', async () => {
    const { one, two } = both()
    const { id } = expectOk(await one.call('POST', '/credentials', body('contended')), 201)
    const changes = Array.from({ length: 40 }, async (_, i) => {
      const api = i % 2 === 0 ? one : two
      api.management.audit.system(1, 'provider.error', { type: 'credential', id })
      api.management.health.rejected({ organizationId: 1, id, version: 1 }, 1, { code: 'transient', message: 'no' })
      const name = `at once ${i}`
      const made = expectOk(await api.call('POST', '/keys', { name }, { token: one.admin }), 201)
      expect(api.management.states.findKey(sha256(made.token))?.key.name).toBe(name)
      expectOk(await api.call('PUT', `/credentials/${id}`, body('contended', { weight: i + 2 }), { token: one.admin }))
      await api.management.health.flush()
    })
    await Promise.all(changes)
    await Promise.all([one, two].map(({ management }) => management.states.poll()))
    const held = [one, two].map(({ management }) => management.states.get(1))
    expect(held[0]).toEqual(held[1])
    expect(held[0]?.keys.filter(({ name }) => name.startsWith('at once'))).toHaveLength(40)
    expect(expectOk(await two.call('GET', `/credentials/${id}`)).version).toBe(41)
    expect(await one.management.audit.verify(1)).toMatchObject({ ok: true })
  })

  test('a rejection in one is one in the other', async () => {
    const { one, two } = both()
    const { id } = expectOk(await one.call('POST', '/credentials', body('rejected')), 201)
    const until = Date.now() + 60_000
    const shared = nextState(two.management.states, ({ credentials }) =>
      credentials.some((each) => each.id === id && each.rejectedUntil === until),
    )
    one.management.health.rejected({ organizationId: 1, id, version: 1 }, until, {
      code: 'upstream_credentials_rejected',
      message: 'no',
    })
    await shared
    expect(expectOk(await two.call('GET', `/credentials/${id}`)).last_error).toMatchObject({ message: 'no' })
  })
})

describeGateway('the state in memory', (api) => {
  test('gateway#46 reads of it touch no database; while that is away the last state stays', async () => {
    const { database, management, platform } = api()
    const { token } = expectOk(await api().call('POST', '/keys', { name: 'k' }), 201)
    let asked = 0
    let isAway = false
    const watch = <T>(work: () => Promise<T>): Promise<T> => {
      asked++
      return isAway ? Promise.reject(new Error('the database is away')) : work()
    }
    const counted: Database = {
      dialect: database.dialect,
      location: database.location,
      get: (sql, params) => watch(() => database.get(sql, params)),
      all: (sql, params) => watch(() => database.all(sql, params)),
      run: (sql, params) => watch(() => database.run(sql, params)),
      transaction: (fn) => watch(() => database.transaction(fn)),
      snapshot: (fn) => watch(() => database.snapshot(fn)),
      version: () => database.version(),
      ping: () => database.ping(),
      scrub: () => database.scrub(),
      close: () => database.close(),
    }
    const log = { info: () => {}, warn: () => {}, error: () => {} }
    const parts = { sealer: platform.sealer, clock: { now: Date.now }, log, isInitialized: async () => true }
    const states = new States({ ...parts, database: counted })
    await states.poll()
    const before = asked
    await states.poll()
    expect(asked).toBe(before + 1)
    for (let i = 0; i < 100; i++) expect([states.get(1)?.id, states.findKey(sha256(token))?.key.name]).toEqual([1, 'k'])
    expect(states.findKey(sha256('mvk_unknown'))).toBeUndefined()
    expect(asked).toBe(before + 1)
    isAway = true
    await expect(states.poll()).rejects.toThrow('away')
    expect(states.findKey(sha256(token))).toBeDefined()
    isAway = false
    expectOk(await api().call('POST', '/keys', { name: 'another' }), 201)
    await states.poll()
    expect(states.get(1)?.keys).toHaveLength(2)
    expect(management.states.get(1)?.revision).toBe(states.get(1)?.revision)
  })

  test('gateway#22 keys of the seal are changed under load: all goes on, and all is sealed anew', async () => {
    const ids: number[] = []
    for (let i = 0; i < 20; i++) {
      ids.push(
        expectOk(
          await api().call('POST', '/credentials', body(`sealed ${i}`, { api_key: `sk-planted-${i}-0123456789` })),
          201,
        ).id,
      )
    }
    let isOver = false
    const load = async (): Promise<void> => {
      for (let i = 0; !isOver; i++) {
        const reply = await api().call(
          'PUT',
          `/credentials/${ids[i % 20]}`,
          body(`sealed ${i % 20}`, { api_key: '', weight: i % 10 }),
        )
        expectOk(reply)
        const broken = api()
          .management.states.get(1)
          ?.credentials.filter(({ isBroken }) => isBroken)
        expect(broken).toEqual([])
      }
    }
    const running = load()
    for (let i = 0; i < 3; i++) {
      const report = await api().platform.keys.rotate({ prune: i === 2 })
      expect(report.failed).toEqual([])
    }
    isOver = true
    await running
    const { current } = JSON.parse(readFileSync(api().platform.sealer.path, 'utf8'))
    expect(current).toBe('k4')
    const rows = await api().database.all<{ value: string }>('SELECT value FROM gateway_credential_secrets')
    expect(rows.map(({ value }) => value.split('.')[1])).toEqual(rows.map(() => 'k4'))
    await api().management.states.reload(1)
    const open = new Map(
      api()
        .management.states.get(1)
        ?.credentials.map(({ id, secrets }) => [id, secrets['api_key']]),
    )
    expect(ids.map((id) => open.get(id))).toEqual(ids.map((_, i) => `sk-planted-${i}-0123456789`))
  })

  test('gateway#22 a sealed value that was moved breaks its credential, and only that', async () => {
    const { call, database, management } = api()
    const [one, two] = [
      expectOk(await call('POST', '/credentials', body('moved from')), 201),
      expectOk(await call('POST', '/credentials', body('moved to')), 201),
    ]
    await database.run(
      `UPDATE gateway_credential_secrets SET value = (SELECT value FROM gateway_credential_secrets WHERE id = $1) WHERE id = $2`,
      [`${one.id}/api_key`, `${two.id}/api_key`],
    )
    await management.states.reload(1)
    const broken = management.states.get(1)?.credentials.filter(({ isBroken }) => isBroken)
    expect(broken).toMatchObject([{ id: two.id, secrets: {} }])
    expect(expectOk(await call('GET', `/credentials/${two.id}`))).toMatchObject({
      health: { state: 'rejected' },
      last_error: {
        code: 'secret_unreadable',
        message: expect.stringMatching(/does not open.*enter it anew/),
        at: expect.any(String),
      },
    })
    const { health, last_error } = expectOk(await call('GET', `/credentials/${one.id}`))
    expect([health.state, last_error]).toEqual(['unknown', undefined])
    expect(expectOk(await call('POST', `/credentials/${two.id}/test`, {}))).toMatchObject({
      ok: false,
      error: { code: 'secret_unreadable' },
    })
    expect(expectOk(await call('PUT', `/credentials/${two.id}`, body('moved to'))).last_error).toBeUndefined()
    expect(management.states.get(1)?.credentials.some(({ isBroken }) => isBroken)).toBe(false)
  })
})
