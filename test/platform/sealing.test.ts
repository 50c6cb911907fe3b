import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createApp } from '../../src/app.ts'
import { withPlatform } from '../../src/app/platform.ts'
import type { RotationReport } from '../../src/platform/sealing/rotation.ts'
import { createKeyFile, readKeyFile, replaceKeyFile, withNewKey } from '../../src/platform/sealing/key-file.ts'
import { SealError, Sealer, type SealedPlace } from '../../src/platform/sealing/sealer.ts'
import { readSecrets, sealSecrets } from './secrets.ts'
import { createPlace, describeInPlaces, initialize, type Place } from './support.ts'

const directory = mkdtempSync(join(tmpdir(), 'mem-test-sealing-'))
const file = join(directory, 'platform.key')
const logged: object[] = []
const log = { info: () => {}, warn: () => {}, error: (fields: object) => void logged.push(fields) }

const here: SealedPlace = { organizationId: 1, table: 'connections', rowId: 7, column: 'token' }
const anyPlace: fc.Arbitrary<SealedPlace> = fc.record({
  organizationId: fc.nat(),
  table: fc.stringMatching(/^[a-z_]{1,20}$/),
  rowId: fc.oneof(fc.nat(), fc.uuid()),
  column: fc.stringMatching(/^[a-z_]{1,20}$/),
})

beforeEach(() => {
  rmSync(file, { force: true })
  createKeyFile(file)
  logged.length = 0
})
afterAll(() => rmSync(directory, { recursive: true }))

describe('sealed values', () => {
  test('open where they were sealed, and nowhere else', () => {
    const sealer = new Sealer(file, log)
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), anyPlace, anyPlace, (secret, place, there) => {
        const sealed = sealer.seal(secret, place)
        expect(sealed).toMatch(/^v1\.k1\.[\w-]{16}\.[\w-]{22,}$/)
        expect(sealer.open(sealed, place)).toBe(secret)
        fc.pre(JSON.stringify(place) !== JSON.stringify(there))
        expect(() => sealer.open(sealed, there)).toThrow(SealError)
      }),
    )
    expect(sealer.seal('same', here)).not.toBe(sealer.seal('same', here))
  })

  test('do not open when any part is changed', () => {
    const sealer = new Sealer(file, log)
    const sealed = sealer.seal('secret', here)
    /** The key id as it is, the rest by its bytes: the last letter of base64url may hold bits that no byte uses. */
    const meaningOf = (text: string): string => {
      const [version, id, ...parts] = text.split('.')
      return [version, id, ...parts.map((part) => Buffer.from(part, 'base64url').toString('hex'))].join('.')
    }
    const changed = fc
      .tuple(fc.nat(sealed.length - 1), fc.constantFrom('A', 'a', '0', '_', '.'))
      .map(([at, letter]) => sealed.slice(0, at) + letter + sealed.slice(at + 1))
      .filter((text) => meaningOf(text) !== meaningOf(sealed))
    fc.assert(
      fc.property(changed, (text) => {
        expect(() => sealer.open(text, here)).toThrow(SealError)
      }),
    )
    for (const value of [
      '',
      'v1',
      'v1.k1..',
      'v2.k1.AAAA.AAAA',
      'v1.toString.AAAA.AAAAAAAAAAAAAAAAAAAAAAAA',
      `${sealed}.x`,
    ]) {
      expect(() => sealer.open(value, here)).toThrow(SealError)
    }
    expect(() => sealer.open('v1.k9.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAAAA', here)).toThrow('no key k9')
  })
})

describe('the key file', () => {
  test('is made once, 0600, with a key of 32 bytes', () => {
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const { current, keys } = JSON.parse(readFileSync(file, 'utf8'))
    expect([current, Object.keys(keys), Buffer.from(keys.k1, 'base64').length]).toEqual(['k1', ['k1'], 32])
    expect(createKeyFile(file)).toBe(false)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ current, keys })
  })

  test.each([
    ['another mode', () => chmodSync(file, 0o640), '0640'],
    ['no file', () => rmSync(file), 'ENOENT'],
    ['no JSON', () => writeFileSync(file, '{"current'), 'not JSON'],
    ['a missing key', () => writeFileSync(file, '{"current":"k2","keys":{"k1":"AAAA"}}'), '"current"'],
    ['a short key', () => writeFileSync(file, '{"current":"k1","keys":{"k1":"AAAA"}}'), '32 bytes'],
  ])('with %s it is a configuration error that shows no key', (_, spoil, text) => {
    const [key] = Object.values(JSON.parse(readFileSync(file, 'utf8')).keys)
    spoil()
    const failure = (() => {
      try {
        return readKeyFile(file)
      } catch (error) {
        return error
      }
    })()
    expect(failure).toMatchObject({
      name: 'ConfigError',
      key: 'platform.key_file',
      message: expect.stringContaining(text),
    })
    expect(String(failure)).not.toContain(String(key))
  })

  test('stays where a link leads to when keys are added', () => {
    const link = join(directory, 'link.key')
    symlinkSync(file, link)
    replaceKeyFile(link, withNewKey(readKeyFile(link)))
    expect(lstatSync(link).isSymbolicLink()).toBe(true)
    expect(readKeyFile(file).current).toBe('k2')
    expect(readdirSync(directory).toSorted()).toEqual(['link.key', 'platform.key'])
    rmSync(link)
  })

  test('is a file: a pipe is not waited for', () => {
    rmSync(file)
    execFileSync('mkfifo', ['-m', '600', file])
    expect(() => readKeyFile(file)).toThrow('it is no file')
  })

  test('is picked up when it changes; while it is no good, the keys read before stay', () => {
    const sealer = new Sealer(file, log)
    const old = sealer.seal('one', here)
    replaceKeyFile(file, withNewKey(sealer.keys()))
    const anew = sealer.seal('two', here)
    expect(anew).toMatch(/^v1\.k2\./)
    expect([sealer.open(old, here), sealer.open(anew, here)]).toEqual(['one', 'two'])
    copyFileSync(file, `${file}.good`)
    writeFileSync(file, 'spoilt')
    expect([sealer.open(old, here), sealer.open(anew, here)]).toEqual(['one', 'two'])
    expect(logged).toHaveLength(1)
    rmSync(file)
    copyFileSync(`${file}.good`, file)
    expect(sealer.seal('three', here)).toMatch(/^v1\.k2\./)
  })
})

test.skipIf(spawnSync('prlimit', ['--version']).status !== 0)(
  'a key file for which there is no room leaves no trace',
  () => {
    const limitFiles = (bytes: number | 'unlimited') =>
      execFileSync('prlimit', ['--pid', `${process.pid}`, `--fsize=${bytes}:unlimited`])
    const before = [readdirSync(directory), readFileSync(file, 'utf8')]
    const anew = withNewKey(readKeyFile(file))
    limitFiles(20)
    try {
      expect(() => replaceKeyFile(file, anew)).toThrow('EFBIG')
    } finally {
      limitFiles('unlimited')
    }
    expect([readdirSync(directory), readFileSync(file, 'utf8')]).toEqual(before)
  },
)

test.skipIf(process.getuid?.() !== 0)(
  'a key file that root replaces stays that of the user who runs the server',
  () => {
    chownSync(file, 1234, 1235)
    replaceKeyFile(file, withNewKey(readKeyFile(file)))
    expect(statSync(file)).toMatchObject({ uid: 1234, gid: 1235 })
    expect(statSync(file).mode & 0o777).toBe(0o600)
  },
)

describeInPlaces('rotation', (where) => {
  const rotate = (prune = false): Promise<RotationReport> =>
    withPlatform(where().config(), { upgrade: false }, ({ keys }) => keys.rotate({ prune }))

  test('git-host#1 init makes the key; again is a conflict that leaves it alone', async () => {
    await initialize(where())
    const { key_file } = where().config().platform
    const made = readFileSync(key_file)
    await expect(initialize(where())).rejects.toMatchObject({ code: 'conflict', details: { reason: 'initialized' } })
    rmSync(key_file)
    await expect(initialize(where())).rejects.toMatchObject({ code: 'conflict' })
    expect(existsSync(key_file)).toBe(false)
    await expect(createApp(where().config())).rejects.toMatchObject({ name: 'ConfigError', key: 'platform.key_file' })
    writeFileSync(key_file, made, { mode: 0o600 })
  })

  test('git-host#9 rotate beside a running sealer, then prune: secrets open', async () => {
    const running = new Sealer(where().config().platform.key_file, log)
    await sealSecrets(where(), running, 450)
    expect(await rotate()).toEqual({ current: 'k2', added: true, resealed: 450, failed: [], pruned: [] })
    await sealSecrets(where(), running, 3)
    const report = await rotate(true)
    expect(report).toEqual({ current: 'k3', added: true, resealed: 453, failed: [], pruned: ['k1', 'k2'] })
    expect(Object.keys(running.keys().keys)).toEqual(['k3'])
    const secrets = await readSecrets(where(), running)
    expect(secrets).toHaveLength(453)
    expect(secrets.every(({ opened, id }) => opened === `secret ${id}`)).toBe(true)
  })

  test('git-host#10 a value moved to another row does not open, and is left out of a rotation', async () => {
    const sealer = new Sealer(where().config().platform.key_file, log)
    const database = where().open()
    await database.run('UPDATE test_secrets SET secret = (SELECT secret FROM test_secrets WHERE id = 1) WHERE id = 2')
    const secrets = await readSecrets(where(), sealer)
    expect(secrets.filter(({ opened }) => opened === undefined).map(({ id }) => id)).toEqual([2])
    const report = await rotate(true)
    expect(report).toMatchObject({ added: true, resealed: 452, failed: ['test_secrets.secret of row 2'], pruned: [] })
    await database.run('DELETE FROM test_secrets WHERE id = 2')
    await database.close()
    expect(await rotate(true)).toMatchObject({ added: true, failed: [], pruned: ['k3', 'k4'] })
  })

  test('an interrupted rotation is ended with its own key', async () => {
    const { key_file } = where().config().platform
    replaceKeyFile(key_file, withNewKey(readKeyFile(key_file)))
    expect(await rotate()).toMatchObject({ current: 'k6', added: false, resealed: 452 })
    expect(await rotate()).toMatchObject({ current: 'k7', added: true })
  })

  test('two at once lose no key', async () => {
    await Promise.all([rotate(), rotate(), rotate(true)])
    await rotate()
    const secrets = await readSecrets(where(), new Sealer(where().config().platform.key_file, log))
    expect(secrets.every(({ opened }) => opened !== undefined)).toBe(true)
  })
})

test('git-host#9 a server does not start with a key file of mode 0644', async () => {
  const place: Place = await createPlace('sqlite')
  await initialize(place)
  chmodSync(place.config().platform.key_file, 0o644)
  await expect(createApp(place.config())).rejects.toMatchObject({ name: 'ConfigError', key: 'platform.key_file' })
  chmodSync(place.config().platform.key_file, 0o600)
  await (await createApp(place.config())).close()
  await place.remove()
})
