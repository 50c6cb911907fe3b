import { expect, test } from 'vitest'
import { RestError } from '../../src/platform/errors.ts'
import { Passwords } from '../../src/platform/passwords.ts'
import { createPlace, expectOk, initialize, PASSWORD, startPlatform } from './support.ts'

const cheap = { ln: 4, r: 8, p: 1 }

test('a hash names its parameters, is salted, and verifies under any others', async () => {
  const passwords = new Passwords(cheap)
  const [one, two] = [await passwords.hash(PASSWORD), await passwords.hash(PASSWORD)]
  expect(one).toMatch(/^\$scrypt\$ln=4,r=8,p=1\$[\w+/]{22}==\$[\w+/]{43}=$/)
  expect(one).not.toBe(two)
  const others = new Passwords({ ...cheap, ln: 5 })
  expect(await others.verify(PASSWORD, one)).toBe(true)
  expect(await others.verify(`${PASSWORD} `, one)).toBe(false)
  expect([passwords.isCurrent(one), others.isCurrent(one)]).toEqual([true, false])
  expect(await passwords.verify('caf\u00e9 at noon', await passwords.hash('cafe\u0301 at noon'))).toBe(true)
})

test('what waits is bounded: more are told to come again', async () => {
  const passwords = new Passwords(cheap)
  const results = await Promise.allSettled(Array.from({ length: 110 }, () => passwords.hash(PASSWORD)))
  const refused = results.filter((result) => result.status === 'rejected').map(({ reason }) => reason)
  expect(refused).toHaveLength(8)
  for (const error of refused) expect(error).toMatchObject({ code: 'rate_limited', headers: { 'Retry-After': '1' } })
  expect(refused[0]).toBeInstanceOf(RestError)
  const unknown = await Promise.allSettled(Array.from({ length: 110 }, () => passwords.verify(PASSWORD, undefined)))
  // No hash at all takes its turn like any other: it is no quicker.
  expect(unknown.filter(({ status }) => status === 'rejected')).toHaveLength(8)
  expect(unknown[0]).toEqual({ status: 'fulfilled', value: false })
  expect(await passwords.verify(PASSWORD, await passwords.hash(PASSWORD))).toBe(true)
})

test('a login with a hash of other parameters renews it', async () => {
  const place = await createPlace('sqlite')
  await initialize(place)
  const database = place.open()
  const stored = async (): Promise<string | undefined> =>
    (await database.get<{ password_hash: string }>('SELECT password_hash FROM platform_users'))?.password_hash
  await database.run('UPDATE platform_users SET password_hash = $1', [await new Passwords(cheap).hash(PASSWORD)])
  const api = await startPlatform(place)
  expect(await stored()).toMatch(/^\$scrypt\$ln=5,/)
  const renewed = await stored()
  expectOk(await api.call('POST', '/login', { email: 'ada@example.org', password: PASSWORD }))
  expect(await stored()).toBe(renewed)
  await api.stop()
  await database.close()
  await place.remove()
})
